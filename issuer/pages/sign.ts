import { type Html, html } from './html.ts'

const shapes = { good: 'M5 12.5l4.5 4.5L19 7.5', bad: 'M12 5v8.5M12 18.5v.01' } as const

/** A tick or an exclamation mark beside a heading that says the same. */
export const sign = (kind: keyof typeof shapes): Html =>
  html`<svg class="sign ${kind}" width="48" height="48" viewBox="0 0 24 24" aria-hidden="true"><path d="${shapes[kind]}"/></svg>`
