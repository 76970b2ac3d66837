import { gzipSync } from 'node:zlib'
import type { Browser } from 'playwright-core'
import { findAsset, locales } from '../../issuer/pages/index.ts'
import { chromium, launchChromium } from '../../test/support/chromium.ts'
import type { Page } from '../harness/comparison.ts'
import { percentile } from '../harness/percentiles.ts'
import { support } from '../harness/process.ts'
import { authorizationPath, newRequest, type Site } from '../harness/sign-in-flow.ts'
import type { Stage } from '../harness/stage.ts'
import { oneLine, pageExamples, pagesWithoutExample } from './page-examples.ts'
import { verdict } from './sign-in-world.ts'

const mostBytes = 15_000
const atMostMs = 150
const loads = 20
/** A browser compiles and caches for itself when it is new. */
const warmUp = 3
const floorName = 'the floor: a page of one line'

interface Size {
  name: string
  /** As it is, and compressed; both with everything that it loads, in the language in which it is largest. */
  bytes: number
  gzip: number
}

/**
 * Every page of signing in: its size with all that it loads, and how long Chromium takes until the largest part of it is
 * painted, from the click that leads there, with nothing in its cache. The click is on a page of another site, as an
 * application is, for which Chromium starts another process; a page of one line, in the same way, is what is left
 * without us.
 */
export const measurePages = async (stage: Stage, site: Site): Promise<Page> => {
  const sizes = Object.keys(pageExamples).map(sizeOf)
  const largest = sizes.reduce((one, other) => (other.gzip > one.gzip ? other : one))
  const paints = chromium === undefined ? [] : await measurePaints(stage, site, largest.name)
  return {
    tables: [
      [
        ['a page with what it loads, in its longest language', 'bytes', 'gzip', 'bar', ''],
        ...sizes.map(({ name, bytes, gzip }) => [
          name,
          String(bytes),
          String(gzip),
          `≤ ${mostBytes}`,
          verdict(gzip <= mostBytes),
        ]),
        ...pagesWithoutExample().map((name) => [`${name}: no example`, '', '', '', '']),
      ],
      [
        [`largest contentful paint, ${loads} loads, empty cache`, 'p50 ms', 'longest ms', 'bar', ''],
        ...paints.map(({ name, ms }) => {
          const p50 = percentile(ms, 0.5)
          const judged = name === floorName ? ['', ''] : [`≤ ${atMostMs} ms`, verdict(p50 <= atMostMs)]
          return [name, p50.toFixed(0), Math.max(...ms).toFixed(0), ...judged]
        }),
        ...(chromium === undefined ? [['not measured: there is no Chromium here', '', '', '', '']] : []),
      ],
    ],
    figures: { sizes, paints },
  }
}

const sizeOf = (name: string): Size => {
  const inEach = locales.map((locale) => {
    const { content } = pageExamples[name]!(locale)
    const files = [Buffer.from(content), ...filesOf(content)]
    return {
      name,
      bytes: files.reduce((sum, file) => sum + file.length, 0),
      gzip: files.reduce((sum, file) => sum + gzipSync(file).length, 0),
    }
  })
  return inEach.reduce((one, other) => (other.gzip > one.gzip ? other : one))
}

/** Styles, scripts and pictures that it names. */
const filesOf = (content: string): Buffer[] => {
  const named = content.matchAll(/<(?:link|script|img)\b[^>]*?\b(?:href|src)="([^"]+)"/gi)
  return [...new Set([...named].map(([, path = '']) => path))].map((path) => {
    const asset = findAsset(path)
    if (!asset) throw new Error(`a page names ${path}, which is none of ours`)
    return asset.content
  })
}

const measurePaints = async (stage: Stage, site: Site, largest: string) => {
  const examples = await stage.serve(new URL('../peers/page-server.ts', import.meta.url), support, {})
  const browser = await launchChromium()
  stage.onStop(() => browser.close())
  const atExamples = (name: string) => `http://localhost:${examples.port}/${name}`
  const addresses: Record<string, () => string> = {
    'the page to sign in, from the authorization request on': () =>
      `${site.origin}${authorizationPath(site, newRequest())}`,
    [`the largest: ${largest}`]: () => atExamples(largest),
    [floorName]: () => atExamples(oneLine),
  }
  // Another site than `localhost`.
  const application = `http://127.0.0.1:${examples.port}/${oneLine}`
  const took: Record<string, number[]> = {}
  for (let load = -warmUp; load < loads; load++) {
    for (const [name, addressOf] of Object.entries(addresses)) {
      const ms = await paintOf(browser, application, addressOf())
      if (load >= 0) took[name] = [...(took[name] ?? []), ms]
    }
  }
  return Object.entries(took).map(([name, ms]) => ({ name, ms }))
}

const paintOf = async (browser: Browser, application: string, address: string): Promise<number> => {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(application)
  await page.goto(address)
  const ms = await page.evaluate(largestPaint)
  await context.close()
  return ms
}

/** In ms from the beginning of the navigation, its redirects included. As text, because it runs in the page. */
const largestPaint = `new Promise((resolve) => {
  new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime))
    .observe({ type: 'largest-contentful-paint', buffered: true })
})` as unknown as () => Promise<number>
