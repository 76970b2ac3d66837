import { expect, test } from 'vitest'
import { webhookSecretOf } from '../../deliveries/hook-secrets.ts'
import { createSigningKey, signatureHeaders } from '../../relay/signature.ts'
import { checkSignature, firstDifference } from '../../web/console/pages/hooks/signature.ts'

/** What the console says of a webhook that somebody pastes: by the headers that the relay really makes. */

const key = 'uCk9ZyWQ4nTf2XwRj7PbE1sLhV6mDa3g'
const body = '{"hookId":"h1","event":"User.Created","data":{"name":"Zoë"}}'
const now = 1_767_323_045_000

const arrived = (change: Partial<Parameters<typeof checkSignature>[0]> = {}, keys = [key]) => {
  const [newest, ...older] = keys.map(createSigningKey)
  const headers = signatureHeaders({
    ...{ id: 'e1', timestamp: now / 1_000, body: Buffer.from(body) },
    keys: [newest!, ...older],
  })
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return { headers: `POST /webhooks HTTP/1.1\n${lines.join('\n')}`, body, key, now, ...change }
}

test('what the relay signs is genuine, by the key in both of its forms, and by one that is being replaced', async () => {
  const genuine = { isGenuine: true, checked: ['webhook-signature', 'logto-signature-sha-256'], hints: [] }
  expect(await checkSignature(arrived())).toEqual(genuine)
  expect(await checkSignature(arrived({ key: ` ${webhookSecretOf(key)}\n` }))).toEqual(genuine)
  // The older header has one signature only, that of the newest key.
  expect(await checkSignature(arrived({}, ['another key of thirty-two letters', key]))).toEqual({
    ...{ isGenuine: true, checked: ['webhook-signature'] },
    hints: [expect.stringMatching(/key was replaced/)],
  })
})

test('headers are read as whoever pastes them has them', async () => {
  const { headers } = arrived()
  const json = JSON.stringify(
    Object.fromEntries(
      headers
        .split('\n')
        .slice(1)
        .map((line) => line.split(': ')),
    ),
  )
  const curl = headers
    .split('\n')
    .slice(1)
    .map((line) => `-H '${line}'`)
    .join(' \\\n')
  for (const text of [headers.toUpperCase().split(':')[0] + headers.slice(headers.indexOf(':')), json, curl])
    expect(await checkSignature(arrived({ headers: text }))).toMatchObject({ isGenuine: true })
})

test.each([
  ['a line break at the end', `${body}\n`, /line break at its end/],
  ['other white space', JSON.stringify(JSON.parse(body), null, 2), /written anew/],
  ['escaped letters', body.replace('ë', '\\u00eb'), /written anew/],
])('a body with %s is not genuine, and it says why', async (_, changed, hint) => {
  expect(await checkSignature(arrived({ body: changed }))).toEqual({
    ...{ isGenuine: false, checked: [], hints: [expect.stringMatching(hint)] },
  })
})

test('another key, a missing header and an old request are told apart', async () => {
  expect(await checkSignature(arrived({ key: 'another key' }))).toEqual({
    ...{ isGenuine: false, checked: [], hints: [expect.stringMatching(/another key, or the body/)] },
  })
  expect(await checkSignature(arrived({ headers: 'webhook-id: e1' }))).toEqual({
    ...{ isGenuine: false, checked: [] },
    hints: [expect.stringMatching(/webhook-timestamp, webhook-signature/)],
  })
  expect(await checkSignature(arrived({ now: now + 3_600_000 }))).toMatchObject({
    ...{ isGenuine: true, hints: [expect.stringMatching(/60 minutes ago.*more than 5 minutes/)] },
  })
  expect(await checkSignature(arrived({ now: now - 600_000 }))).toMatchObject({
    ...{ isGenuine: true, hints: [expect.stringMatching(/10 minutes ahead/)] },
  })
})

test('the first byte that differs is counted in bytes', () => {
  expect(firstDifference(body, body)).toBeUndefined()
  expect(firstDifference(body, body.replace('"}}', '" }}'))).toEqual({ at: 59, sent: '}}', got: ' }}' })
  expect(firstDifference(body, body.slice(0, 20))).toEqual({ at: 20, sent: 't":"User.Created","d', got: '' })
})
