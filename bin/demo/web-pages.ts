import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { z } from 'zod'

/** The pages of the demo's web application, as HTML that needs no scripts. */

export const signedOutPage = (note = 'You are not signed in.'): string =>
  `<p>${escaped(note)}</p>
<p class="choices"><a class="button" href="/sign-in">Sign in</a> <a class="button plain" href="/register">Create an account</a></p>
<p class="small">Sign in as <b>demo_customer</b>, with the password that stands in the terminal. A new account needs no mailbox:
any address will do, and the mail with the code is printed in the terminal too.</p>`

interface OrdersAnswer {
  status: number
  body: string
}

export const ordersPage = ({ name, isSupport, ...answer }: OrdersAnswer & { name: string; isSupport: boolean }) =>
  `<p>Signed in as <b>${escaped(name)}</b>.</p>
${ordersTable(answer)}
<form method="post" action="/sign-out" class="choices">
${isSupport ? '<a class="button" href="/support">Act for a customer</a> ' : ''}<button class="button${isSupport ? ' plain' : ''}">Sign out</button></form>`

/** What the gateway answered, also where it is no orders. */
export const ordersTable = ({ status, body }: OrdersAnswer): string => {
  const answer = ordersAnswer.safeParse(parsed(body))
  const rows = answer.data?.orders.map(
    ({ id, item, total }) => `<tr><td>${escaped(id)}<td>${escaped(item)}<td>${total.toFixed(2)} €`,
  )
  return `${rows ? `<table><tr><th>Order<th>Item<th>Total${rows.join('')}</table>` : ''}
<details${rows ? '' : ' open'}><summary>${status} from the orders API, through the gateway</summary>
<pre tabindex="0">${escaped(body)}</pre></details>`
}

export const problemPage = (problem: string, why = ''): string =>
  `<p><b>${escaped(problem)}</b> ${escaped(why)}</p><p><a class="button" href="/">Start again</a></p>`

export const sendPage = (response: ServerResponse, status: number, body: string) => {
  const head = `<meta name="viewport" content="width=device-width"><title>Demo shop</title><style>${styles}</style>`
  const html = `<!doctype html><html lang="en">${head}<link rel="icon" href="data:,"><main><h1>Demo shop</h1>${body}</main></html>`
  response.writeHead(status, { ...headers, 'Content-Type': 'text/html; charset=utf-8' }).end(html)
}

export const redirect = (response: ServerResponse, to: URL) => {
  response.writeHead(303, { ...headers, Location: to.href }).end()
}

/** Asks every two seconds whether the customer has answered, and loads the page anew then. */
const follow = `setInterval(async()=>{if((await fetch('/support/answer')).status===200)location.reload()},2000)`
export const followScript = `<script>${follow}</script>`

/** No `form-action`: Chromium would apply it to where signing out leads. */
const headers = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'; " +
    `connect-src 'self'; script-src 'sha256-${createHash('sha256').update(follow).digest('base64')}'`,
  'Referrer-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
}

const ordersAnswer = z.object({
  orders: z.array(z.object({ id: z.string(), item: z.string(), total: z.number() })),
})

const parsed = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
export const escaped = (text: string) => text.replace(/[&<>"]/g, (character) => entities[character] ?? '')

const styles = `:root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}
body{margin:0;background:light-dark(#faf6f1,#191512)}
main{max-width:34rem;margin:clamp(0px,10vh - 2rem,4rem) auto;padding:1rem clamp(1rem,6vw,2rem) 2rem;border-radius:1rem;
overflow-wrap:anywhere;background:light-dark(#fff,#241e19)}
h1{color:light-dark(#7a4419,#e0a878)} .small{font-size:.875rem} .choices{display:flex;flex-wrap:wrap;gap:.75rem}
table{width:100%;border-collapse:collapse;margin:1rem 0;overflow-wrap:break-word}
th,td{text-align:left;padding:.5rem .5rem .5rem 0;border-bottom:1px solid light-dark(#e8ddd1,#443a31)}
th:last-child,td:last-child{text-align:right;white-space:nowrap;padding-right:0}
pre{overflow:auto;font-size:.8125rem} details{margin:1rem 0} summary{cursor:pointer}
.button{display:inline-block;padding:.625rem 1.25rem;border:0;border-radius:.5rem;background:#7a4419;color:#fff;font:inherit;text-decoration:none;cursor:pointer}
label{display:block;font-weight:600}
input{box-sizing:border-box;width:100%;padding:.5rem;border:1px solid light-dark(#8c7a69,#a08d7b);border-radius:.5rem;background:none;color:inherit;font:inherit}
.number{margin:0;font-size:3rem;font-weight:700;line-height:1.2;color:light-dark(#7a4419,#e0a878)}
.acting{padding:.75rem 1rem;border-radius:.5rem;background:light-dark(#fbe3cf,#4d3018);border-left:.375rem solid light-dark(#7a4419,#e0a878)}
.plain{background:none;color:inherit;box-shadow:inset 0 0 0 1px light-dark(#7a4419,#e0a878)}
.button:focus-visible,summary:focus-visible,input:focus-visible,pre:focus-visible{outline:3px solid light-dark(#7a4419,#e0a878);outline-offset:2px}`
