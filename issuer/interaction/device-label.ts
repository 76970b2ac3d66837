/** The more special come first: most browsers name others too. */
const browsers: readonly [RegExp, string][] = [
  [/\bEdgA?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
  [/\bCriOS\/|\bChrome\/|\bChromium\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
  [/^curl\//, 'curl'],
]
const systems: readonly [RegExp, string][] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

const nameIn = (table: readonly [RegExp, string][], text: string) => table.find(([pattern]) => pattern.test(text))?.[1]

/** What people call a browser: `Firefox, Windows`. Empty when its `User-Agent` tells nothing. */
export const deviceLabel = (userAgent: string | undefined): string =>
  [nameIn(browsers, userAgent ?? ''), nameIn(systems, userAgent ?? '')].filter((name) => name !== undefined).join(', ')
