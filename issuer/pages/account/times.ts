import { type Html, html } from '../html.ts'
import type { AccountShell } from './shell.ts'

const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

/** `3 hours ago`, and exactly when, in the zone of the person or in UTC. */
export const timeAgo = (shell: Pick<AccountShell, 'locale' | 'timeZone'>, at: Date, now = new Date()): Html => {
  const seconds = Math.max(0, (now.getTime() - at.getTime()) / 1_000)
  const [unit, length] = units.find(([, size]) => seconds >= size) ?? ['minute', 60]
  const relative = new Intl.RelativeTimeFormat(shell.locale, { numeric: 'auto' })
  return html`<time datetime="${at.toISOString()}">${relative.format(-Math.floor(seconds / length), unit)} (${exactly(shell, at)})</time>`
}

export const timeOf = (shell: Pick<AccountShell, 'locale' | 'timeZone'>, at: Date): Html =>
  html`<time datetime="${at.toISOString()}">${exactly(shell, at)}</time>`

const exactly = ({ locale, timeZone }: Pick<AccountShell, 'locale' | 'timeZone'>, at: Date): string => {
  const format = (zone: string | undefined) =>
    new Intl.DateTimeFormat(locale, {
      ...{ year: 'numeric', month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit' },
      ...(zone === undefined ? { timeZone: 'UTC', timeZoneName: 'short' } : { timeZone: zone }),
    }).format(at)
  try {
    return format(timeZone)
  } catch {
    // People may have written anything there.
    return format(undefined)
  }
}
