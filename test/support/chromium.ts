import { spawnSync } from 'node:child_process'
import { type Browser, type BrowserServer, chromium as playwright } from 'playwright-core'

const find = (): string | undefined => {
  const { status, stdout } = spawnSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' })
  if (status === 0) return stdout.trim()
  if (process.env['CI'] === 'true') throw new Error('chromium is not installed, and the tests in it must run here.')
  process.stderr.write('\n*** chromium is not installed: the tests of pages and SDKs in it are skipped.\n\n')
  return undefined
}

/** The Chromium of this machine; undefined: none, which is an error with CI=true. */
export const chromium: string | undefined = find()

/**
 * What Chromium does not do: in the place of Playwright's own list, which is repeated here, and with it processes that
 * every window would start for its address bar and for pages to come. They took half of the time of opening one.
 */
const disabledFeatures = [
  ...['AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsUpgrades', 'LensOverlay'],
  ...['HttpsFirstBalancedModeAutoEnable', 'MediaRouter', 'PaintHolding', 'ThirdPartyStoragePartitioning'],
  ...['AvoidCorsURLLoaderRestartOnRedirect', 'OptimizationHints', 'NetworkTimeServiceQuerying', 'AimEnabled'],
  ...['PreconnectToSearch', 'SpareRendererForSitePerProcess', 'WebUIOmniboxPopup', 'WebUIOmniboxAimPopup'],
]

const options = {
  executablePath: chromium!,
  args: [
    // As root there is no sandbox, and a container may have next to no shared memory.
    ...['--no-sandbox', '--disable-dev-shm-usage'],
    // Nothing but what the tests ask for.
    ...['--disable-background-networking', '--disable-component-update', '--no-default-browser-check'],
    `--disable-features=${disabledFeatures.join()}`,
  ],
}

/** A real browser without a window, which ends with `close()`. */
export const launchChromium = (): Promise<Browser> => playwright.launch(options)

let server: Promise<BrowserServer> | undefined

/**
 * The one of this process, which takes one file of tests after the other: a start of it costs as much as a test. Each
 * test opens a context of its own in it, and `close()` closes what was opened by this call. It ends with the process.
 */
export const startChromium = async (): Promise<Browser> => {
  // Tests of a hangup send one to their process, which is this one's.
  server ??= playwright.launchServer({ ...options, handleSIGHUP: false })
  return playwright.connect((await server).wsEndpoint())
}
