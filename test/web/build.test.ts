import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import { buildConsole, compressConsole } from '../../bin/build/console.ts'

/** What browsers load of the console, as it is built. */

let folder: string
beforeAll(async () => {
  folder = (await buildConsole())!
})

const kilobyte = 1_000
const page = () => readFile(join(folder, 'index.html'), 'utf8')
const weight = async (file: string) => gzipSync(await readFile(join(folder, file)), { level: 9 }).length

/** Files that a page fetches, by the names in a text of ours. */
const named = (text: string): string[] => [
  ...new Set([...text.matchAll(/assets\/([\w.-]+\.(?:js|css))/g)].map(([, name]) => `assets/${name}`)),
]

test('the first page is at most 160 kB, each other one adds at most 40 kB', async () => {
  const first = named(await page())
  const weights = await Promise.all([...first, 'index.html'].map(weight))
  expect(weights.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(160 * kilobyte)
  // The list of what each lazy page needs, as the bundler leaves it in the first one.
  const texts = await Promise.all(first.filter((file) => file.endsWith('.js')).map(readText))
  const others = named(texts.join('\n')).filter((file) => !first.includes(file))
  expect(others.length).toBeGreaterThan(5)
  const pages = texts.flatMap((text) => [...text.matchAll(/import\(`\.\/([\w.-]+\.js)`\)/g)].map(([, name]) => name!))
  expect(pages.length).toBeGreaterThan(3)
  for (const name of pages) {
    const needed = await reachable(`assets/${name}`)
    const own = [...needed].filter((file) => !first.includes(file))
    const sum = (await Promise.all(own.map(weight))).reduce((one, other) => one + other, 0)
    expect([name, sum <= 40 * kilobyte, sum]).toEqual([name, true, sum])
  }
})

const readText = (file: string) => readFile(join(folder, file), 'utf8')

/** With what it imports, in turn. */
const reachable = async (file: string, seen = new Set<string>()): Promise<Set<string>> => {
  if (seen.has(file)) return seen
  seen.add(file)
  for (const [, name] of (await readText(file)).matchAll(/(?:from|import)\s*`?["'`]\.\/([\w.-]+\.js)["'`]/g))
    await reachable(`assets/${name}`, seen)
  return seen
}

test('nothing in the page is inline, and nothing comes from elsewhere', async () => {
  const html = await page()
  expect([...html.matchAll(/<script\b[^>]*>(.*?)<\/script>/gs)].map(([, inline]) => inline)).toEqual([''])
  expect(html).not.toMatch(/<style|\son\w+=|\sstyle=|https?:/)
  for (const file of await readdir(join(folder, 'assets'))) {
    // Their names change with what is in them, so they may be kept for ever.
    expect(file).toMatch(/^[\w.-]+-[\w-]{8}\.(js|css|svg)$/)
    if (file.endsWith('.css')) expect(await readText(`assets/${file}`)).not.toMatch(/@import|url\(/)
  }
})

test('the same sources are built once', async () => {
  const told: string[] = []
  expect(await buildConsole(() => void told.push('building'))).toBe(folder)
  expect(told).toEqual([])
})

test('what is published lies there compressed too', async () => {
  const copy = await mkdtemp(join(tmpdir(), 'surrogate-console-'))
  await cp(folder, copy, { recursive: true })
  await compressConsole(copy)
  const html = await readFile(join(copy, 'index.html'))
  expect(gunzipSync(await readFile(join(copy, 'index.html.gz')))).toEqual(html)
  expect(brotliDecompressSync(await readFile(join(copy, 'index.html.br')))).toEqual(html)
  await rm(copy, { recursive: true })
})
