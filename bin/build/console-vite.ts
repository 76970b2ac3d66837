import type { Plugin, UserConfig } from 'vite'

/** From weak to strong. The first stylesheet that a page gets decides, and any of them may be the first. */
const layers = '@layer reset, tokens, base, components, pages;'

const layersFirst: Plugin = {
  name: 'layers-first',
  enforce: 'pre',
  transform: (code, id) => (id.endsWith('.css') ? { code: `${layers}\n${code}`, map: null } : undefined),
}

/** How Vite makes files for browsers of `web/console/`. */
export default {
  base: '/console/',
  // Libraries say `use client`, of which the bundler would tell at each file.
  logLevel: 'error',
  publicDir: false,
  oxc: { jsx: { runtime: 'automatic' } },
  plugins: [layersFirst],
  css: { modules: { localsConvention: 'camelCaseOnly' } },
  build: {
    emptyOutDir: true,
    // `light-dark()` and nesting are sent as they are.
    target: ['es2024', 'chrome123', 'firefox125', 'safari18'],
    // Inlined files would be `data:` addresses, which the policy of the page refuses in scripts and styles.
    assetsInlineLimit: 0,
    // It would be a script in the page.
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
} satisfies UserConfig
