import { styleText } from 'node:util'
import type { DecisionRecord, Verdict } from '../../../gateway/inspection/decision-answers.ts'

/** How records of decisions are told to people. */

/** Control characters and those that turn the direction of writing: what callers send must not move the cursor. */
const unprintable = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

export const printable = (text: string): string => text.replace(unprintable, '?')

const longest = 72

export const shortened = (text: string, length = longest): string =>
  text.length > length ? `${text.slice(0, length - 1)}…` : text

/** `12 s ago`. Whole units, the largest that fits. */
export const ago = (from: Date, now: Date): string => {
  const ms = now.getTime() - from.getTime()
  return ms < 1_000 ? 'now' : `${span(ms)} ago`
}

export const span = (ms: number): string => {
  const [length, unit] = units.find(([one]) => ms >= one) ?? [1_000, 's']
  return `${Math.floor(ms / length)} ${unit}`
}

const units: readonly (readonly [ms: number, unit: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
]

const colours = { allowed: 'green', denied: 'yellow', failed: 'red' } as const

/** Only on a terminal. */
export const coloured = (verdict: Verdict, text: string): string =>
  styleText(colours[verdict], text, { stream: process.stdout })

export const heading = (text: string): string => styleText('bold', text, { stream: process.stdout })

const member = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** What a line tells of a record; empty where masks leave nothing. */
export const summary = (record: DecisionRecord) => {
  const request = member(record.input, 'request')
  const subject = textOf(member(member(record.input, 'subject'), 'id')) ?? ''
  const actor = textOf(member(member(record.input, 'actor'), 'id'))
  const policyReason = textOf(member(record.result, 'reason'))
  return {
    method: textOf(member(request, 'method')) ?? '?',
    target: `${textOf(member(request, 'host')) ?? ''}${textOf(member(request, 'path')) ?? ''}`,
    who: actor === undefined ? subject : `${actor} for ${subject}`,
    reason:
      (record.code === 'policy_denied' ? policyReason : record.code) ??
      (record.verdict === 'allowed' ? '' : (policyReason ?? '')),
  }
}

/** One decision on a line, as `tail` prints it. */
export const decisionLine = (record: DecisionRecord): string => {
  const { method, target, who, reason } = summary(record)
  const parts = [
    record.timestamp.slice(11, 23),
    coloured(record.verdict, String(record.status)),
    `${method} ${shortened(target)}`,
    record.route ?? '-',
    ...(who === '' ? [] : [who]),
    ...(reason === '' ? [] : [reason]),
    record.decision_id,
  ]
  return parts.map((part, index) => (index === 1 ? part : printable(part))).join('  ')
}
