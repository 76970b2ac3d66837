import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleExample, createConsoleExample } from '../support/console-example.ts'
import type { ConsoleVisit } from '../support/console-in-chromium.ts'
import { type ConsoleWithRelay, startConsoleWithRelay } from '../support/console-with-relay.ts'

/**
 * The pictures of docs/console.md and of the README. Every page of them is opened and has to show what the picture is
 * about; `PICTURES=write npm test -- test/browser/console-pictures.test.ts` takes them anew.
 */

const writes = process.env['PICTURES'] === 'write'
const folder = new URL('../../docs/pictures/', import.meta.url)
const size = { width: 1120, height: 700 }
/** Together: whoever clones the repository gets all of them. */
const mostBytes = 600_000

interface Picture {
  /** Below `/console`. */
  path(ids: ConsoleExample['ids']): string
  /** What it is about. */
  shows: string | RegExp
  before?(page: Page): Promise<void>
}

const pictures: Record<string, Picture> = {
  home: { path: () => '/', shows: /Warehouse has taken nothing/ },
  guide: { path: ({ application }) => `/applications/${application}`, shows: 'JavaScript, without a library' },
  waiting: { path: ({ failing }) => `/hooks/${failing}/waiting`, shows: /2 behind it/ },
  replay: {
    path: ({ answering }) => `/hooks/${answering}/replays?event=User.*&state=succeeded`,
    shows: /1\d events/,
    before: (page) => page.getByRole('button', { name: 'Count' }).click(),
  },
  palette: {
    path: () => '/users',
    shows: /Mary Somerville/,
    async before(page) {
      await page.getByRole('row', { name: /Ada Lovelace/ }).waitFor()
      await page.keyboard.press('Control+k')
      await page.getByRole('dialog').waitFor()
      await page.keyboard.type('mary')
      await page.getByRole('menuitem', { name: 'Mary Somerville' }).waitFor()
    },
  },
  branding: { path: () => '/branding', shows: 'Dark pages for those who prefer them' },
}

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleWithRelay
  let example: ConsoleExample
  let visit: ConsoleVisit
  beforeAll(async () => {
    app = await startConsoleWithRelay()
    example = await createConsoleExample(app)
    const { id, username, password } = await app.home.createMember('owner')
    await app.home.issuer.sql(`UPDATE users SET name = 'Ada Byron' WHERE id = $1`, [id])
    visit = await app.signIn('/', { person: { id, username, password }, viewport: size, reducedMotion: 'reduce' })
  })
  afterAll(async () => {
    await visit?.context.close()
    await example?.close()
    await app?.close()
  })

  /** The port differs from run to run. */
  const withExampleAddress = (page: Page) =>
    page.evaluate(`{
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
      for (let node; (node = walker.nextNode()); )
        node.data = node.data.replaceAll(/http:\\/\\/(localhost|127\\.0\\.0\\.1):\\d+/g, 'https://id.example.com')
    }`)

  test.each(Object.entries(pictures))('the picture %s shows its page', async (name, { path, shows, before }) => {
    const { page } = visit
    await visit.goTo(path(example.ids))
    await before?.(page)
    await page.getByText(shows).first().waitFor()
    const file = new URL(`${name}.png`, folder)
    if (writes) {
      await mkdir(folder, { recursive: true })
      await withExampleAddress(page)
      await page.evaluate('document.fonts.ready')
      await writeFile(file, await page.screenshot({ animations: 'disabled', caret: 'hide' }))
    }
    const content = await readFile(file)
    // The header chunk of a PNG: its signature, then width and height.
    expect(content.subarray(1, 4).toString()).toBe('PNG')
    expect({ width: content.readUInt32BE(16), height: content.readUInt32BE(20) }).toEqual(size)
  })
})

test('the documentation shows all of them, each with words for those who do not see it; together they are small', async () => {
  const files = (await readdir(folder)).toSorted()
  expect(files).toEqual(
    Object.keys(pictures)
      .map((name) => `${name}.png`)
      .toSorted(),
  )
  const [page, readme] = await Promise.all(
    ['docs/console.md', 'README.md'].map((path) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')),
  )
  const shown = [...page!.matchAll(/!\[([^\]]{20,})\]\(pictures\/([\w.-]+)\)/g)].map(([, , file]) => file)
  expect(shown.toSorted()).toEqual(files)
  // On the first screen.
  expect(readme!.split('\n## ')[0]).toMatch(/!\[[^\]]{20,}\]\(docs\/pictures\/[\w.-]+\)/)
  const contents = await Promise.all(files.map((file) => readFile(new URL(file, folder))))
  expect(contents.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(mostBytes)
})
