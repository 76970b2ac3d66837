/**
 * URLs of our own files, the same from the TypeScript sources and from the published JavaScript: code is named without
 * its extension (`moduleUrl('./worker', import.meta.url)`), which is that of the module that asks.
 */
export const moduleUrl = (path: string, from: string): URL =>
  new URL(path + (from.endsWith('.ts') ? '.ts' : '.js'), from)

/** A file that is not code (rules, bundles, pages) beside the module that asks. */
export const assetUrl = (path: string, from: string): URL => new URL(path, from)
