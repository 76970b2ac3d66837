import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Page as Tab } from 'playwright-core'
import type { Page } from '../harness/comparison.ts'
import { pagesToVisit } from './console-pages.ts'
import { type ConsoleWorld, watchRequests } from './console-world.ts'
import { verdict } from './sign-in-world.ts'

const firstAtMostKb = 160
const otherAtMostKb = 40

/** By the beginnings of the names of its files: it is fetched where there is code to edit. */
const isOfEditor = (file: string): boolean => /^assets\/code-editor-/.test(file)

/**
 * What Chromium loads of the console with nothing in its cache: HTML, scripts, styles and pictures, as large as the
 * package has them for browsers that take gzip. For each page but the first: what going there from the first one loads
 * more.
 */
export const measureSizes = async (world: ConsoleWorld, progress: (line: string) => void): Promise<Page> => {
  const pages = await pagesToVisit(world)
  const first = await filesOf(world)
  const others: { name: string; kb: number; hasEditor: boolean }[] = []
  for (const [name, go] of [...ways(pages), ...overlays]) {
    progress(`size of ${name}`)
    const more = [...(await filesOf(world, go))].filter((file) => !first.has(file))
    const own = more.filter((file) => !isOfEditor(file))
    others.push({ name, kb: await weigh(world, own), hasEditor: own.length < more.length })
  }
  const firstKb = await weigh(world, [...first])
  const editorKb = await weigh(
    world,
    (await readdir(join(world.folder, 'assets'))).map((file) => `assets/${file}`).filter(isOfEditor),
  )
  const missing = pages.filter(({ address }) => address === undefined)
  const row = (name: string, kb: number, atMostKb: number) => [
    name,
    kb.toFixed(1),
    `≤ ${atMostKb} kB`,
    verdict(kb <= atMostKb),
  ]
  return {
    tables: [
      [
        ['of the console, loaded', 'gzip kB', 'bar', ''],
        row('the first page', firstKb, firstAtMostKb),
        ...others
          .toSorted((one, other) => other.kb - one.kb)
          .map(({ name, kb, hasEditor }) => row(hasEditor ? `${name}, without the editor` : name, kb, otherAtMostKb)),
        ['the editor of scripts, on the pages that say so', editorKb.toFixed(1), '', ''],
        ...missing.map(({ name }) => [`${name}: not measured, it needs an example`, '', '', '']),
      ],
    ],
    figures: { firstKb, others, editorKb, missing },
  }
}

type Way = readonly [name: string, go: (tab: Tab) => Promise<unknown>]

const ways = (pages: Awaited<ReturnType<typeof pagesToVisit>>): Way[] =>
  pages.flatMap(({ name, address }): Way[] =>
    // As a link does: the router hears of it.
    address === undefined ? [] : [[name, (tab) => tab.evaluate(`history.pushState(null, '', '/console${address}')`)]],
  )

/** What stands over any page. */
const overlays: readonly Way[] = [
  ['the palette, on Ctrl K', (tab) => tab.keyboard.press('Control+k')],
  ['the help, on ?', (tab) => tab.keyboard.press('?')],
]

/** The first page, and where one goes from there; names of files of the build. */
const filesOf = async ({ url, open }: ConsoleWorld, go?: Way[1]): Promise<ReadonlySet<string>> => {
  const tab = await open()
  const { answers, quiet } = watchRequests(tab)
  await tab.goto(`${url}/`)
  await quiet()
  if (go) {
    await go(tab)
    await quiet()
  }
  await tab.context().close()
  const wrong = answers.find(({ status }) => status >= 400)
  if (wrong) throw new Error(`${wrong.path} answered ${wrong.status}`)
  const files = answers.map(({ path }) => /^\/console\/(assets\/.*)$/.exec(path)?.[1])
  return new Set(['index.html', ...files.filter((file) => file !== undefined)])
}

const weigh = async ({ folder }: ConsoleWorld, files: readonly string[]): Promise<number> => {
  const contents = await Promise.all(files.map((file) => readFile(join(folder, file))))
  return contents.reduce((sum, content) => sum + gzipSync(content, { level: 9 }).length, 0) / 1_000
}
