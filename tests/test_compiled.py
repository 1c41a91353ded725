from numba.core import caching

from loginfer import compiled


def test_kernels_work_where_their_code_cannot_be_kept(monkeypatch, capsys):
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    monkeypatch.setattr(compiled._announce, "said", False)
    monkeypatch.setattr(compiled._announce, "kept", True)

    @compiled.kernel
    def twice(number):
        return 2 * number

    assert twice(21) == 42
    assert "set NUMBA_CACHE_DIR" in capsys.readouterr().err
