import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const surrogate = fileURLToPath(new URL('../../bin/surrogate.ts', import.meta.url))

test('a command whose reader has seen enough ends as if it had been read to the end', async () => {
  const child = spawn(process.execPath, [surrogate, 'describe', 'events'], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  const said: string[] = []
  child.stderr.setEncoding('utf8').on('data', (text: string) => said.push(text))
  const [code] = await once(child, 'close')
  expect({ code, said: said.join('') }).toEqual({ code: 0, said: '' })
})
