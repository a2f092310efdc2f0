"""Opens a page in QtWebKit, without a screen, until its title says that it is done: `qtwebkit.py URL CERTIFICATE [--machine]`.

The page sees `evenerHost.now_ms()`, a clock, and `evenerHost.core_ms()`: core time of this process in milliseconds, or with --machine the time for which the only core of
the machine was not idle. Only the certificate that is named is trusted besides those that the system trusts. Prints one line of JSON
with the TLS library that is in use and whether Evener's provider is in the process; ends with 1 and a sentence where the page fails.
"""
import os
import sys
import time

from PyQt5.QtCore import QObject, QUrl, pyqtSlot
from PyQt5.QtNetwork import QSslCertificate, QSslError, QSslSocket
from PyQt5.QtWebKitWidgets import QWebPage
from PyQt5.QtWidgets import QApplication


def idle_ms():
    """Idle time of the first core, which the kernel counts to the nanosecond."""
    with open("/proc/timer_list", encoding="ascii") as lines:
        for line in lines:
            if line.strip().startswith(".idle_sleeptime"):
                return float(line.split(":")[1].split()[0]) * 1e-6
    raise OSError("/proc/timer_list says nothing of idle time")


class Host(QObject):
    """What the page may ask."""

    def __init__(self, is_machine):
        super().__init__()
        self.is_machine = is_machine

    @pyqtSlot(result=float)
    def now_ms(self):
        """A clock that goes on, in milliseconds; QtWebKit's own has whole ones."""
        return time.perf_counter() * 1e3

    @pyqtSlot(result=float)
    def core_ms(self):
        """Core time so far, in milliseconds."""
        if self.is_machine:
            return time.monotonic() * 1e3 - idle_ms()
        return time.process_time() * 1e3


class Page(QWebPage):
    """The page, whose trouble goes to standard error."""

    def javaScriptConsoleMessage(self, message, line, source):
        print(f"{source}:{line}: {message}", file=sys.stderr)


def main(url, certificate, *options):
    application = QApplication(sys.argv[:1])
    host, page = Host("--machine" in options), Page()
    frame = page.mainFrame()
    frame.javaScriptWindowObjectCleared.connect(lambda: frame.addToJavaScriptWindowObject("evenerHost", host))
    trusted = QSslCertificate.fromPath(certificate)

    def judge(reply, errors):
        """Takes the named certificate, which vouches for itself, and nothing else that is wrong with it."""
        forgiven = [QSslError.SelfSignedCertificate, QSslError.SelfSignedCertificateInChain]
        if host.is_machine:
            # The clock of a guest knows no dates.
            forgiven += [QSslError.CertificateNotYetValid, QSslError.CertificateExpired]
        unfit = [error for error in errors if error.error() not in forgiven or error.certificate() not in trusted]
        if not unfit:
            reply.ignoreSslErrors()
            return
        print(f"the certificate of {reply.url().host()} does not fit: {unfit[0].errorString()}", file=sys.stderr)
        application.exit(1)

    def look(title):
        if title == "evener: done":
            application.exit(0)
        elif title.startswith("evener: failed: "):
            print(title[len("evener: failed: "):], file=sys.stderr)
            application.exit(1)

    page.networkAccessManager().sslErrors.connect(judge)
    frame.titleChanged.connect(look)
    frame.load(QUrl(url))
    status = application.exec_()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        has_provider = str("/evener.so" in maps.read()).lower()
    print(f'{{"tls_library": "{QSslSocket.sslLibraryVersionString()}", "has_provider": {has_provider}}}', flush=True)
    # Without the destructors of Qt's own threads, which wait for connections that the page keeps.
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
