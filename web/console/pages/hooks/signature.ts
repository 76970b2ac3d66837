/** Checks in the page what a receiver got: nothing of it is sent. */

export interface Arrived {
  /** Any text with the headers in it: an HTTP request, JSON, a curl command. */
  headers: string
  body: string
  /** As the console shows it, or as `webhookSecret`. */
  key: string
  /** In ms since the epoch. */
  now: number
}

export interface Verdict {
  isGenuine: boolean
  /** The headers whose signature is that of the body. */
  checked: string[]
  /** What is wrong, or would be at a receiver. */
  hints: string[]
}

/** What libraries of Standard Webhooks allow. */
const toleranceMs = 300_000

const needed = ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const
const older = 'logto-signature-sha-256'

export const checkSignature = async ({ headers: text, body, key, now }: Arrived): Promise<Verdict> => {
  const headers = headersIn(text)
  const missing = needed.filter((name) => !headers[name])
  if (missing.length > 0 && !headers[older])
    return { isGenuine: false, checked: [], hints: [`Not among the headers: ${missing.join(', ')}.`] }
  const hmac = await hmacOf(key)
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers
  const checkedOf = async (bytes: string) => {
    const standard = `v1,${base64(await hmac(`${id}.${timestamp}.${bytes}`))}`
    return [
      ...(signatures.split(' ').includes(standard) ? [needed[2]] : []),
      ...(headers[older]?.toLowerCase() === hex(await hmac(bytes)) ? [older] : []),
    ]
  }
  const checked = await checkedOf(body)
  const clock = timestamp ? clockHint(Number(timestamp) * 1_000 - now) : []
  if (checked.length > 0) {
    const isReplaced = headers[older] !== undefined && !checked.includes(older)
    const replaced = isReplaced
      ? [`The key was replaced and signs along for a while; ${older} has the newest only.`]
      : []
    return { isGenuine: true, checked, hints: [...clock, ...replaced] }
  }
  for (const { change, hint } of changes)
    if ((await checkedOf(change(body))).length > 0) return { isGenuine: false, checked, hints: [hint] }
  return { isGenuine: false, checked, hints: ['It was signed with another key, or the body is not what was sent.'] }
}

/** What receivers do to a body before they check it. */
const changes: readonly { change(body: string): string; hint: string }[] = [
  {
    change: (body) => body.replace(/\r?\n$/, ''),
    hint: 'It is genuine without the line break at its end: check the bytes as they arrive.',
  },
  {
    change: (body) => {
      try {
        return JSON.stringify(JSON.parse(body))
      } catch {
        return body
      }
    },
    hint: 'The JSON was read and written anew, with other white space or letters: check the bytes as they arrive, before anything parses them.',
  },
]

const clockHint = (aheadMs: number): string[] => {
  if (Number.isNaN(aheadMs)) return ['webhook-timestamp is no number of seconds.']
  const minutes = Math.round(Math.abs(aheadMs) / 60_000)
  if (aheadMs > toleranceMs) return [`It was signed by a clock that is ${minutes} minutes ahead of this one.`]
  if (-aheadMs > toleranceMs)
    return [`It was signed ${minutes} minutes ago: libraries refuse what is more than 5 minutes old.`]
  return []
}

const headersIn = (text: string): Partial<Record<string, string>> =>
  Object.fromEntries(
    [...text.matchAll(/["']?\b(webhook-[a-z]+|logto-signature-sha-256)["']?\s*:\s*["']?([^"'\r\n]+)/gi)].map(
      ([, name = '', value = '']) => [name.toLowerCase(), value.trim()],
    ),
  )

const encoder = new TextEncoder()

const hmacOf = async (text: string): Promise<(message: string) => Promise<Uint8Array>> => {
  const key = text.trim()
  const bytes = key.startsWith('whsec_') ? bytesOf(key.slice('whsec_'.length)) : encoder.encode(key)
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  // There is no empty key in WebCrypto.
  const imported = await crypto.subtle.importKey('raw', bytes.length ? bytes : encoder.encode('\0'), algorithm, false, [
    'sign',
  ])
  return async (message) => new Uint8Array(await crypto.subtle.sign('HMAC', imported, encoder.encode(message)))
}

const bytesOf = (text: string): Uint8Array<ArrayBuffer> => {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  } catch {
    return new Uint8Array()
  }
}

const base64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))
const hex = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')

/** How much of each is shown. */
const shownBytes = 20

/** Where two bodies part, counted in bytes, and what each goes on with. */
export const firstDifference = (sent: string, got: string): { at: number; sent: string; got: string } | undefined => {
  if (sent === got) return undefined
  const [one, other] = [encoder.encode(sent), encoder.encode(got)]
  let at = 0
  while (at < one.length && one[at] === other[at]) at++
  const excerpt = (bytes: Uint8Array) => new TextDecoder().decode(bytes.slice(at, at + shownBytes))
  return { at, sent: excerpt(one), got: excerpt(other) }
}
