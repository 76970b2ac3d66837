import { compact } from './styles.ts'

/** Of the account pages alone: what they have beside the look of all pages. */
export const accountStyles = compact(`
.frame { display: grid; grid-template-columns: 248px minmax(0, 1fr); gap: 32px; align-items: start; width: 100%; max-width: 960px; margin-bottom: auto; }
.frame main { max-width: none; margin: 0; }
.frame ~ .note { max-width: 960px; }
.skip { position: absolute; left: 16px; top: -100px; z-index: 1; }
.skip:focus { top: 16px; }
.menu { position: sticky; top: 24px; }
.menu .account { margin-bottom: 16px; padding: 4px 12px; border: 0; }
.menu ul, .entries, .rows { margin: 0; padding: 0; list-style: none; }
.menu p { margin: 20px 14px 4px; color: var(--soft); font-size: 13px; font-weight: 600; }
.menu a { display: block; min-height: 44px; padding: 10px 14px; border-radius: 10px; color: inherit; text-decoration: none; }
.menu a:hover { background: var(--card); }
.menu [aria-current] { background: var(--card); color: var(--main); font-weight: 600; box-shadow: var(--shadow); }
.back { display: none; margin-bottom: 12px; }
.back a { display: inline-block; padding: 10px 0; }
section { margin-top: 32px; padding-top: 24px; border-top: 1px solid var(--line); }
section:has(> .rows) { padding-top: 0; border: 0; }
section h2 + .rows { margin-top: 12px; }
section h2 { font-size: 18px; line-height: 1.3; }
.rows { margin-top: 24px; }
.rows li { border-top: 1px solid var(--line); }
.rows li:last-child { border-bottom: 1px solid var(--line); }
.rows a { display: flex; flex-wrap: wrap; gap: 0 16px; align-items: center; min-height: 56px; padding: 12px 8px; color: inherit; text-decoration: none; }
.rows a:hover { background: var(--page); }
.rows b { flex: 1 1 180px; font-weight: 600; }
.rows span { flex: 1 1 180px; color: var(--soft); }
.rows a::after { content: ""; flex: none; width: 8px; height: 8px; border: solid var(--soft); border-width: 2px 2px 0 0; transform: rotate(45deg); }
.entries { margin-top: 24px; display: grid; gap: 16px; }
.entry { padding: 20px; border: 1px solid var(--line); border-radius: 14px; }
.entry h2, .entry h3 { margin: 0; font-size: 16px; }
.entry h2 + p, .entry h3 + p { margin-top: 6px; }
.entry p { color: var(--soft); font-size: 15px; }
.entry .client { margin-bottom: 16px; }
.entry .label { margin-top: 16px; color: var(--text); }
.entry .scopes { margin-bottom: 0; }
.entry form { margin-top: 16px; }
.entry .message { color: var(--bad); font-size: 15px; }
.entry .number { margin: 4px 0 12px; color: var(--text); font-size: 40px; font-weight: 700; line-height: 1.2; letter-spacing: .08em; }
.asks { border-color: var(--main); }
.entry .choice { color: var(--text); }
.badge { display: inline-block; padding: 1px 10px; border-radius: 20px; background: var(--tint); color: var(--main); font-size: 13px; font-weight: 600; }
h2 .badge { margin-inline-start: 8px; }
p > .badge { margin-bottom: 6px; }
.first { margin-top: 24px; padding: 16px 20px; border-radius: 12px; background: var(--tint); }
.first .actions { margin-top: 12px; }
.frame .actions { justify-content: start; grid-template-columns: minmax(0, max-content); }
.frame .actions > button, .frame .actions > .button { min-width: 160px; }
.danger { background: transparent; border-color: var(--bad); color: var(--bad); }
.danger:hover { background: var(--bad-tint); }
.facts { margin-top: 24px; padding: 0; border: 0; }
.facts dd { margin-bottom: 16px; }
.frame .codes { max-width: 440px; }
.frame .field input:not([type=checkbox]), .frame .field select { max-width: 440px; }
.frame select { width: 100%; min-height: 48px; padding: 0 14px; border: 1px solid var(--edge); border-radius: 10px; background: var(--field); color: inherit; font: inherit; }
.avatar { display: block; width: 88px; height: 88px; margin-top: 24px; border-radius: 50%; object-fit: cover; }
@media (max-width: 760px) {
  .frame { display: block; max-width: 560px; }
  .menu { display: none; }
  .back { display: block; }
  .frame .actions { grid-template-columns: minmax(0, 1fr); }
  .entry { padding: 16px; }
}
@media print { .menu, .back, .skip { display: none !important; } .frame { display: block; } }
`)
