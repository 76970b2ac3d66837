/** The light theme: also in the dark, for operators who have no other. */
export const light = `
  --page: #f4f5f8;
  --card: #fff;
  --text: #151823;
  --soft: #555c6e;
  --line: #e1e4eb;
  --edge: #848b9c;
  --field: #fff;
  --main: #3b4fd6;
  --main-over: #2f40b4;
  --on-main: #fff;
  --tint: #eef0fd;
  --bad: #b3261e;
  --bad-tint: #fdf2f1;
  --good: #146c43;
  --good-tint: #e9f6ef;
  --shadow: 0 1px 2px rgb(16 20 40 / 6%), 0 12px 40px -8px rgb(16 20 40 / 12%);
`

/** The one stylesheet. Colours meet WCAG 2.2 AA in both themes: 4.5 to 1 for text, 3 to 1 for what can be used. */
const source = `
:root {
  color-scheme: light dark;
${light}}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0d0f15;
    --card: #171a23;
    --text: #eceef4;
    --soft: #a3aabb;
    --line: #2a2f3c;
    --edge: #6f778a;
    --field: #11141b;
    --main: #95a3ff;
    --main-over: #b0baff;
    --on-main: #0e1130;
    --tint: #21263d;
    --bad: #ffb4ab;
    --bad-tint: #2e1a1b;
  --good: #7ddba7;
  --good-tint: #142b20;
    --shadow: 0 0 0 1px #23283480;
  }
}
*, ::before, ::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0;
  min-height: 100vh;
  min-height: 100svh;
  display: flex;
  flex-direction: column;
  align-items: center;
  padding: 24px 16px;
  background: var(--page);
  color: var(--text);
  font: 16px/1.5 -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Noto Sans", sans-serif;
  overflow-wrap: anywhere;
}
main {
  position: relative;
  width: 100%;
  max-width: 432px;
  margin: auto 0;
  padding: 40px;
  background: var(--card);
  border-radius: 20px;
  box-shadow: var(--shadow);
}
footer {
  display: flex;
  gap: 8px;
  align-items: center;
  padding-top: 24px;
  color: var(--soft);
  font-size: 13px;
  letter-spacing: .02em;
}
h1, h2, p, dl, dd, ul, fieldset { margin: 0; padding: 0; border: 0; }
h1 { font-size: 26px; line-height: 1.25; font-weight: 650; letter-spacing: -.015em; text-wrap: balance; }
h2 { font-size: 16px; }
.lead { margin-top: 8px; color: var(--soft); }
.lead bdi { color: var(--text); font-weight: 600; }
.client { display: flex; align-items: center; gap: 12px; margin-bottom: 28px; font-weight: 600; }
.brand { display: block; margin-bottom: 28px; }
.brand img { display: block; max-width: 100%; height: auto; max-height: 56px; object-fit: contain; }
.note { width: 100%; max-width: 432px; padding: 20px 4px 0; color: var(--soft); font-size: 14px; }
footer { flex-wrap: wrap; justify-content: center; }
footer a { color: inherit; }
.logo { flex: none; width: 44px; height: 44px; border-radius: 12px; object-fit: contain; }
.letter {
  flex: none;
  display: grid;
  place-items: center;
  background: var(--tint);
  color: var(--main);
  font-weight: 650;
  font-size: 20px;
}
.name, .who { min-width: 0; }
.sign { display: block; width: 48px; height: 48px; margin-bottom: 20px; padding: 12px; border-radius: 50%; fill: none; stroke: currentColor; stroke-width: 2.5; stroke-linecap: round; stroke-linejoin: round; }
.client:has(+ .sign) { padding-inline-end: 60px; }
.client + .sign { position: absolute; top: 38px; inset-inline-end: 40px; }
.good { color: var(--good); background: var(--good-tint); }
.bad { color: var(--bad); background: var(--bad-tint); }
form { margin-top: 24px; }
.field { margin-top: 20px; }
.label, .field label { display: block; margin-bottom: 6px; font-size: 15px; font-weight: 600; }
input:not([type=checkbox]) {
  width: 100%;
  min-height: 48px;
  padding: 0 14px;
  border: 1px solid var(--edge);
  border-radius: 10px;
  background: var(--field);
  color: inherit;
  font: inherit;
}
input[readonly] { background: var(--page); border-color: var(--line); }
[aria-invalid] { border: 2px solid var(--bad) !important; }
.message { margin-bottom: 6px; color: var(--bad); font-size: 15px; font-weight: 600; }
.problem { margin-top: 24px; padding: 16px 20px; border-radius: 12px; border: 2px solid var(--bad); background: var(--bad-tint); }
.problem p + p { margin-top: 8px; }
.warning { margin-top: 24px; padding: 14px 18px; border-radius: 12px; background: var(--bad-tint); color: var(--text); font-size: 15px; }
.problem a { color: var(--bad); font-weight: 600; }
.notice { margin-top: 24px; padding: 14px 18px; border-radius: 12px; background: var(--good-tint); color: var(--text); font-weight: 600; }
.field > .small { margin: 0 0 8px; }
.code { max-width: 220px; font-size: 22px !important; letter-spacing: .2em; font-variant-numeric: tabular-nums; }
.ways { display: flex; flex-wrap: wrap; justify-content: center; gap: 0 8px; margin-top: 16px; }
form + form:has(> .ways) { margin-top: 0; }
.ways .link { margin: 0; }
.passkey { margin-top: 12px; }
.passkey .actions { margin-top: 0; }
.lead + .passkey, .problem + .passkey { margin-top: 24px; }
.passkey ~ form:has(> .actions), .passkey ~ form > .actions { margin-top: 12px; }
.passkey .message { margin: 12px 0 0; }
form + .actions { margin-top: 12px; }
.unseen { position: absolute; width: 1px !important; height: 1px; min-height: 0 !important; padding: 0 !important; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.choice { display: flex; gap: 12px; align-items: flex-start; min-height: 44px; padding: 10px 0; cursor: pointer; }
.choice input { flex: none; width: 20px; height: 20px; margin: 2px 0; accent-color: var(--main); }
.field + .choice, .account + .choice { margin-top: 12px; }
.choice + .actions { margin-top: 16px; }
.actions { display: grid; gap: 12px; margin-top: 24px; }
.or { display: flex; align-items: center; gap: 12px; color: var(--soft); font-size: 14px; }
.or::before, .or::after { content: ""; flex: 1; border-top: 1px solid var(--line); }
.or + .actions { margin-top: 16px; }
.providers button { display: flex; gap: 12px; align-items: center; justify-content: center; }
.providers img, .providers .letter { flex: none; width: 24px; height: 24px; border-radius: 6px; object-fit: contain; font-size: 14px; }
.providers picture { display: flex; }
.pair { grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); }
button, .button {
  min-height: 48px;
  padding: 10px 20px;
  border: 1px solid var(--button-edge, transparent);
  border-radius: 10px;
  background: var(--button, var(--main));
  color: var(--on-button, var(--on-main));
  font: inherit;
  font-weight: 600;
  text-align: center;
  text-decoration: none;
  cursor: pointer;
}
button:hover, .button:hover { background: var(--button-over, var(--main-over)); }
.quiet { border-color: var(--edge); background: transparent; color: var(--text); }
.quiet:hover { background: var(--page); }
.link { min-height: 44px; margin-inline-start: auto; padding: 0 8px; border-color: transparent; background: none; color: var(--main); font-weight: 500; text-decoration: underline; text-underline-offset: 3px; }
.link:hover { background: var(--tint); }
:focus-visible { outline: 3px solid var(--main); outline-offset: 2px; }
.problem:focus { outline: none; }
.account { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; padding: 12px; border: 1px solid var(--line); border-radius: 12px; }
.account .letter { width: 40px; height: 40px; border-radius: 50%; font-size: 17px; }
.who { flex: 1 1 140px; line-height: 1.35; }
.who b, .who span { display: block; }
.who b { font-weight: 600; }
.who span, .small, small, dt { color: var(--soft); font-size: 14px; }
small { display: block; }
.scopes { margin-bottom: 20px; list-style: none; }
.scopes li { position: relative; padding: 5px 0 5px 28px; }
.scopes li::before {
  content: "";
  position: absolute;
  left: 5px;
  top: 10px;
  width: 6px;
  height: 11px;
  border: solid var(--main);
  border-width: 0 2px 2px 0;
  transform: rotate(45deg);
}
.small { margin-top: 16px; }
fieldset { min-width: 0; }
fieldset .small { margin: 0; }
legend { padding: 0; }
dl { margin-top: 28px; padding-top: 20px; border-top: 1px solid var(--line); }
dd { margin-bottom: 8px; }
code { font: 14px/1.5 ui-monospace, Menlo, Consolas, monospace; user-select: all; }
form + form { margin-top: 12px; }
.whose + p { margin-top: 20px; }
noscript + .passkey { margin-top: 20px; }
.small + .secret { margin-top: 6px; }
details { margin-top: 24px; border-top: 1px solid var(--line); padding-top: 12px; }
summary { min-height: 44px; padding: 10px 0; color: var(--main); font-weight: 500; cursor: pointer; }
details form { margin-top: 8px; }
.factors { display: grid; gap: 12px; }
.factors button { padding: 12px 16px; text-align: start; }
.factors b, .factors span { display: block; }
.factors b { font-weight: 600; }
.factors span { color: var(--soft); font-weight: 400; font-size: 14px; }
.qr { display: block; width: 212px; max-width: 100%; margin: 16px auto; border: 1px solid var(--line); border-radius: 12px; background: #fff; }
.secret { padding: 10px 14px; border-radius: 10px; background: var(--page); text-align: center; }
.secret code { font-size: 15px; letter-spacing: .04em; }
.codes { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 8px 16px; margin: 24px 0 0; padding: 20px; border-radius: 12px; background: var(--page); list-style: none; text-align: center; }
.codes code { font-size: 16px; }
.links { margin-top: 20px; padding-inline-start: 20px; }
.links li { padding: 4px 0; }
a { color: var(--main); text-underline-offset: 3px; }
.links a, .small a { display: inline-block; padding: 8px 0; }
@media (scripting: none) { .scripted { display: none; } }
@media print { button, .client, footer, .account { display: none !important; } body, main { background: #fff; color: #000; box-shadow: none; } }
@media (max-width: 480px) {
  body { padding: 0 0 24px; background: var(--card); }
  main { margin: 0 0 auto; padding: 28px 20px; border-radius: 0; box-shadow: none; }
  .note { padding-inline: 20px; }
  .client + .sign { top: 26px; inset-inline-end: 20px; }
}
`

/** Without the line breaks and the indentation that are for people. */
export const compact = (css: string): string =>
  css
    .replace(/\n\s*/g, '')
    .replace(/\s*([{};,>])\s*/g, '$1')
    .replace(/: /g, ':')

export const styles = compact(source)
