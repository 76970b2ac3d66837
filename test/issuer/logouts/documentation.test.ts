import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startBackChannel } from '../../support/back-channel.ts'
import { freePort } from '../../support/free-port.ts'
import { startProcess } from '../../support/process.ts'
import { until } from '../../support/until.ts'

const page = await readFile(new URL('../../../docs/back-channel-logout.md', import.meta.url), 'utf8')

test('the receiver printed on the page takes what we send, once, and refuses everything else', async () => {
  const channel = await startBackChannel()
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-recipe-'))
  await symlink(fileURLToPath(new URL('../../../node_modules', import.meta.url)), join(folder, 'node_modules'))
  const script = join(folder, 'receiver.mjs')
  await writeFile(script, /```js\n([\s\S]*?)```/.exec(page)![1]!)
  const PORT = String(await freePort())
  const uri = `http://127.0.0.1:${PORT}/`
  // What came is kept on its way, to be sent again.
  const { url, received } = await channel.receiver(async ({ token }, response) => {
    response.writeHead((await post(token)).status).end()
  })
  const post = (token: string) => fetch(uri, { method: 'POST', body: new URLSearchParams({ logout_token: token }) })
  const client = await channel.client(url)
  const env = { ISSUER: channel.issuer.issuer, CLIENT_ID: client.id, PORT }
  const receiver = startProcess(process.execPath, [script], { cwd: folder, env })
  try {
    await until(async () => expect((await post('')).status).toBe(400))
    await channel.relay()
    const { browser, idToken, person, sids } = await channel.signIn([client])
    await channel.signOut(browser, idToken)
    await receiver.waitFor(new RegExp(`signed out: ${person.id} ${sids[0]}`))
    await until(async () => expect((await channel.deliveries()).map(({ state }) => state)).toEqual(['delivered']))
    for (const other of [received[0]!.token, idToken, `${received[0]!.token}x`])
      expect((await post(other)).status).toBe(400)
  } finally {
    receiver.signal('SIGKILL')
    await receiver.exited
    await channel.close()
    await rm(folder, { recursive: true })
  }
})
