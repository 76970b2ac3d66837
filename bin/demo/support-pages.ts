import { escaped, followScript, ordersTable } from './web-pages.ts'

/** The pages of acting for a customer. They are complete without the script, which only saves a click. */

/** `form`: what was filled in, where it did not work. */
export const askPage = (note?: string, form?: URLSearchParams): string =>
  `<h2>Act for a customer</h2>
${note ? `<p role="alert"><b>${escaped(note)}</b></p>` : ''}
<form method="post" action="/support">
<p><label for="username">Customer</label><input id="username" name="username" value="${escaped(form?.get('username') ?? 'demo_private')}" required autocomplete="off"></p>
<p><label for="reason">Reason, which they see</label><input id="reason" name="reason" value="${escaped(form?.get('reason') ?? '')}" required maxlength="200" autocomplete="off"></p>
<p class="choices"><button class="button">Ask</button> <a class="button plain" href="/">Back to my orders</a></p></form>
<p class="small"><b>demo_private</b> is asked first, as the issuer's rules want it; <b>demo_customer</b> is not.</p>`

export const waitingPage = (waiting: {
  customer: string
  number: string
  reason: string
  accountPage: string
}): string => {
  const customer = escaped(waiting.customer)
  return `<h2>${customer} is asked</h2>
<p>Tell them this number, which they see too:</p>
<p class="number">${escaped(waiting.number)}</p>
<p>Reason: ${escaped(waiting.reason)}</p>
<p role="status">This page goes on when they have answered at <b>${escaped(waiting.accountPage)}</b>: sign in there in another
browser, as the customer.</p>
<form method="post" action="/support/stop" class="choices">
<a class="button" href="/support">Look again</a> <button class="button plain">Give up</button></form>${followScript}`
}

export const actingPage = (acting: {
  actor: string
  customer: string
  reason: string
  status: number
  body: string
}): string => {
  const customer = escaped(acting.customer)
  return `<p role="status" class="acting"><b>${escaped(acting.actor)}</b> acts for <b>${customer}</b>: ${escaped(acting.reason)}</p>
<h2>Orders of ${customer}</h2>
${ordersTable(acting)}
<form method="post" action="/support/stop" class="choices">
<a class="button plain" href="/support">Look again</a> <button class="button">Stop acting for ${customer}</button></form>`
}
