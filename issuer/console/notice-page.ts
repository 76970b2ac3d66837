import { escapeHtml } from '../base/escape-html.ts'
import { styles } from '../pages/styles.ts'

/**
 * A page for what happens outside the console itself: a heading, a sentence, and where to go on. It looks like the
 * pages of signing in, and has their styles in it, since the console may have an origin of its own.
 */
export const noticePage = (
  title: string,
  sentence: string,
  links: readonly { href: string; text: string }[] = [],
): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>${escapeHtml(title)}</title>
<style>${styles}</style></head>
<body><main><h1>${escapeHtml(title)}</h1><p class="lead">${escapeHtml(sentence)}</p>
${links.map(({ href, text }) => `<p class="small"><a href="${escapeHtml(href)}">${escapeHtml(text)}</a></p>`).join('\n')}</main></body>
</html>
`
