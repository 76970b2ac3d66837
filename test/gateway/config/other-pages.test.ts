import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { parseGatewayConfig } from '../../../gateway/config/load.ts'

/**
 * What pages beside operators.md show of gateway.yaml, and the files of deploy/in-front, are what the gateway takes.
 * Blocks of other programs say so behind `yaml`.
 */

const root = fileURLToPath(new URL('../../../', import.meta.url))
const parsed = (text: string) => parseGatewayConfig(text, { file: '/etc/surrogate/gateway.yaml', env: {} })
const inFront = `${root}deploy/in-front/`
const gatewayFiles = (await readdir(inFront, { recursive: true })).filter((name) =>
  /(?:^|\/)gateway(?:-forward-auth|-ext-authz)?\.yaml$/.test(name),
)

test.each(['in-front-of.md', 'envoy.md', 'coming-from.md'])('the examples of docs/%s', async (name) => {
  const page = await readFile(`${root}docs/${name}`, 'utf8')
  const blocks = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text]) => text!)
  expect(blocks.length).toBeGreaterThan(0)
  const whole = parse(await readFile(`${inFront}nginx/gateway-forward-auth.yaml`, 'utf8'))
  for (const block of blocks) {
    const text = block.startsWith('version: 1') ? block : stringify({ ...whole, ...parse(block) })
    expect(parsed(text).routes.length, block).toBeGreaterThan(0)
  }
})

test.each(gatewayFiles)('deploy/in-front/%s', async (name) => {
  const { trustedProxies, routes } = parsed(await readFile(inFront + name, 'utf8'))
  expect(trustedProxies).toEqual(['127.0.0.1'])
  expect(routes.map(({ id }) => id)).toEqual(['orders-read', 'orders-write', 'live', 'public'])
})

test('the pages about proxies in front name every file', async () => {
  const pages = ['in-front-of.md', 'envoy.md'].map((name) => readFile(`${root}docs/${name}`, 'utf8'))
  const page = (await Promise.all(pages)).join()
  const files = (await readdir(inFront, { recursive: true })).filter((name) => name.includes('.'))
  expect(files.filter((name) => !page.includes(`(../deploy/in-front/${name})`))).toEqual([])
})
