"""Chromium as Debian packages it, driven by Selenium: for tests, and for pictures of the documentation."""

import base64
import contextlib
import json
import tempfile
from pathlib import Path
from urllib.parse import quote

BROWSER = Path("/usr/bin/chromium")
DRIVER = Path("/usr/bin/chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def missing():
    """Return why there is no browser to drive; None if there is one."""
    for path, package in ((BROWSER, "chromium"), (DRIVER, "chromium-driver")):
        if not path.exists():
            return f"no {path}: install Debian's package {package}"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed"
    return None


@contextlib.contextmanager
def browser(downloads=None):
    """Give a browser that keeps what pages say and load, with an empty profile; it is ended afterwards."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory() as profile:
        options = Options()
        options.binary_location = str(BROWSER)
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        if downloads is not None:
            wanted = {"download.default_directory": str(downloads), "download.prompt_for_download": False}
            # One page gives several files.
            wanted["profile.default_content_setting_values.automatic_downloads"] = 1
            options.add_experimental_option("prefs", wanted)
        # The path is given, so that Selenium looks for no driver, here or elsewhere.
        driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
        try:
            driver.set_page_load_timeout(60)
            yield driver
        finally:
            driver.quit()


def address(path, fragment=""):
    """Return the address of a file."""
    return f"file://{quote(str(Path(path).resolve()))}{fragment}"


def open_page(driver, path, fragment=""):
    """Open a page from its file, and wait until its script says that all is drawn."""
    driver.get("about:blank")  # else another fragment of the same page would not load it again
    driver.get(address(path, fragment))
    wait(driver, "document.body.dataset.ready === 'yes'")
    if driver.execute_script("return !!document.getElementById('explorer')"):
        wait(driver, "document.getElementById('explorer').dataset.ready === 'yes'")


def wait(driver, condition):
    """Wait until a condition of the page holds."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 60, poll_frequency=0.05).until(
        lambda d: d.execute_script(f"return Boolean({condition})"), f"never: {condition}"
    )


def resize(driver, width, height=900):
    """Make the page so wide: a window of its own cannot be as narrow as a phone."""
    wanted = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", wanted)


def requests(driver):
    """Return the addresses of all that was asked for since the last time."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [params["request"]["url"] for params in sent]


def picture(driver, path, width=1200, most=2400):
    """Write what the page looks like from its top, so wide and as high as it is."""
    resize(driver, width)
    height = driver.execute_script("return document.documentElement.scrollHeight")
    resize(driver, width, min(height, most))
    # Plots are as wide as their place, and are drawn again when that changes.
    driver.execute_async_script("const done = arguments[0]; setTimeout(done, 400);")
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    Path(path).write_bytes(base64.b64decode(shot["data"]))
