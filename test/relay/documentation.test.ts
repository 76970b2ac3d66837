import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { webhookSecretOf } from '../../deliveries/hook-secrets.ts'
import { catalogue } from '../../events/catalogue.ts'
import { userUpdated } from '../support/event-factory.ts'
import { freePort } from '../support/free-port.ts'
import { eachWithLedger, ledger } from '../support/fresh-ledger.ts'
import { startProcess } from '../support/process.ts'

eachWithLedger()

const page = await readFile(new URL('../../docs/webhooks.md', import.meta.url), 'utf8')

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'surrogate-recipe-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

const untilItAnswers = (url: string) => expect.poll(() => fetch(url).then(({ status }) => status)).toBe(401)

test('the receiver printed on the webhooks page takes what we send and refuses what others send', async () => {
  const [, code] = /```js\n([\s\S]*?)```/.exec(page)!
  const script = join(folder, 'receiver.mjs')
  await writeFile(script, code!)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/`
  const hook = await ledger.hook({ url, oldKeys: ['x'.repeat(32)] })
  // Still holds the old key.
  const env = { PORT: String(port), WEBHOOK_SECRET: webhookSecretOf('x'.repeat(32)) }
  const receiver = startProcess(process.execPath, [script], { cwd: folder, env })
  try {
    await untilItAnswers(url)
    await ledger.relay()
    await ledger.record(userUpdated('u1', { name: 'Zoë' }))
    await receiver.waitFor(/User\.Data\.Updated 1 \{ id: 'u1', name: 'Zoë' \}/)
    await ledger.untilTrue(`SELECT state = 'succeeded' FROM deliveries`)
    const forged = await fetch(url, {
      method: 'POST',
      body: '{}',
      headers: {
        'webhook-id': 'x',
        'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
        'webhook-signature': 'v1,AAAA',
      },
    })
    expect(forged.status).toBe(401)
    expect(hook.signingKey).not.toBe('x'.repeat(32))
  } finally {
    receiver.signal('SIGKILL')
    await receiver.exited
  }
})

test('the webhooks page lists every event of the catalogue', () => {
  for (const { type, entity, occurs, planned } of catalogue)
    expect(page).toContain(`| \`${type}\`${planned ? ' (not sent yet)' : ''} | ${entity} | ${occurs} |`)
})

test('an event is said to be planned as long as nothing records it', async () => {
  const folder = new URL('../../issuer/', import.meta.url)
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ts'))
  const sources = await Promise.all(names.map((name) => readFile(new URL(name, folder), 'utf8')))
  const recorded = ({ type }: { type: string }) => sources.some((source) => source.includes(`'${type}'`))
  expect(catalogue.filter((row) => !recorded(row))).toEqual(catalogue.filter(({ planned }) => planned))
})
