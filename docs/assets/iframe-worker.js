// Search without a server: a page that was opened as a file may not start a worker, so a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inner = this.frame.contentWindow
      this.hear = (event) => {
        if (event.source !== inner) return
        event.stopImmediatePropagation()
        this.dispatchEvent(new MessageEvent("message", { data: event.data }))
      }
      addEventListener("message", this.hear)
      inner.postMessage = (data) => parent.postMessage(data, "*")
      this.ready = new Promise((done, fail) => {
        inner.document.open()
        inner.document.write("<!doctype html><script>" +
          "postMessage = data => parent.postMessage(data, '*');" +
          "importScripts = (...all) => all.reduce((last, src) => last.then(() => new Promise(done => {" +
          "const script = document.createElement('script'); script.src = src; script.onload = done; document.head.append(script)" +
          "})), Promise.resolve())</" + "script>")
        const script = inner.document.createElement("script")
        script.onload = done
        script.onerror = fail
        script.src = address
        inner.document.head.append(script)
        inner.document.close()
      })
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      removeEventListener("message", this.hear)
      this.frame.remove()
    }
  }
}
