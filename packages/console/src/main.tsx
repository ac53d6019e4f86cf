/** Where the page begins. */
import { render } from "preact";
import { App } from "./app.js";
import "./style/base.css";
import "./style/parts.css";
import "./style/pages.css";

const place = document.getElementById("page");
if (place !== null) {
  place.textContent = "";
  render(<App />, place);
}
