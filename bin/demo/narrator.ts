import { request } from 'undici'
import type { z } from 'zod'
import { StartupError } from '../../platform/startup-error.ts'
import { howToRun } from '../cli/how-to-run.ts'

export interface Call {
  method: string
  url: string
  headers?: Record<string, string>
  /** Sent as a form. */
  form?: Record<string, string>
  /** Sent as JSON. */
  json?: unknown
}

export interface Expectation<Body extends z.ZodType> {
  status: number
  body: Body
  /** What the `WWW-Authenticate` header must hold. */
  challenge?: RegExp
}

/**
 * Makes calls in front of an audience: shows request, answer and decoded token, and stops at the first answer that is
 * not as expected.
 */
export interface Narrator {
  step(title: string): void
  call<Body extends z.ZodType>(call: Call, expected: Expectation<Body>): Promise<z.output<Body>>
  say(text: string): void
}

export class UnexpectedAnswer extends Error {
  override readonly name = 'UnexpectedAnswer'
}

const shownHeaders = ['content-type', 'www-authenticate', 'x-request-id']

export const createNarrator = (print: (line: string) => void): Narrator => {
  let steps = 0
  const indented = (mark: string, text: string) => {
    for (const line of text.split('\n')) print(`  ${mark} ${line}`)
  }

  return {
    step: (title) => {
      steps += 1
      print(`\n${steps}. ${title}`)
    },
    say: (text) => indented(' ', text),
    async call(call, expected) {
      const headers: Record<string, string> = { ...call.headers }
      let body: string | null = null
      if (call.form) {
        headers['content-type'] = 'application/x-www-form-urlencoded'
        body = new URLSearchParams(call.form).toString()
      } else if (call.json !== undefined) {
        headers['content-type'] = 'application/json'
        body = JSON.stringify(call.json)
      }
      indented('→', `${call.method} ${call.url}`)
      for (const [name, value] of Object.entries(headers)) indented('→', `${name}: ${brief(name, value)}`)
      for (const [name, value] of Object.entries(call.form ?? {})) indented('→', `  ${name}=${brief(name, value)}`)
      if (call.json !== undefined) indented('→', pretty(call.json))

      const answer = await send(call, headers, body)
      indented('←', `HTTP ${answer.status}`)
      for (const name of shownHeaders) {
        const value = answer.headers[name]
        if (value !== undefined) indented('←', `${name}: ${value}`)
      }
      if (answer.text !== '') indented('←', pretty(answer.body))
      const token = accessTokenOf(answer.body)
      if (token) indented('=', `the token says ${JSON.stringify(token, null, 2)}`)

      const parsed = expected.body.safeParse(answer.body)
      const challenge = String(answer.headers['www-authenticate'] ?? '')
      const problems = [
        answer.status === expected.status ? '' : `its status is ${answer.status} instead of ${expected.status}`,
        expected.challenge === undefined || expected.challenge.test(challenge)
          ? ''
          : `its challenge does not match ${expected.challenge}`,
        parsed.success
          ? ''
          : `its body is not as expected: ${parsed.error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`).join('; ')}`,
      ].filter((problem) => problem !== '')
      if (problems.length > 0 || !parsed.success)
        throw new UnexpectedAnswer(`${call.method} ${call.url}: ${problems.join(', ')}.`)
      print(`  ✓ as expected`)
      return parsed.data
    },
  }
}

const send = async (call: Call, headers: Record<string, string>, body: string | null) => {
  try {
    const answer = await request(call.url, { method: call.method, headers, body })
    const text = await answer.body.text()
    return { status: answer.statusCode, headers: answer.headers, text, body: parsed(text) }
  } catch (cause) {
    throw new StartupError(`Nothing answers at ${new URL(call.url).origin}.`, {
      hint: `Start the demo with "${howToRun.start}" in another terminal, then run this again.`,
      exitCode: 3,
      cause,
    })
  }
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Tokens and pictures are long and say nothing to a reader: their beginning is enough. */
const brief = (name: string, value: string) => {
  if (value.startsWith('data:')) return `${value.slice(0, 40)}…`
  if (!/token$|^authorization$/i.test(name)) return value
  const [scheme, credentials] = value.includes(' ') ? value.split(' ') : ['', value]
  return `${scheme} ${credentials!.slice(0, 12)}…`.trimStart()
}

const pretty = (body: unknown) =>
  typeof body === 'string'
    ? body.trimEnd()
    : JSON.stringify(body, (name, value) => (typeof value === 'string' ? brief(name, value) : value), 2)

/** Header and claims of the JWT in `access_token`; undefined when the token is opaque. */
const accessTokenOf = (body: unknown) => {
  const token = (body as { access_token?: unknown } | null)?.access_token
  const parts = typeof token === 'string' ? token.split('.') : []
  if (parts.length !== 3) return undefined
  const [header, claims] = parts.slice(0, 2).map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()))
  return { header, claims }
}
