import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { parseInput } from '../base/parse-input.ts'
import { readFormBody } from '../base/request-body.ts'
import { previewQuery, previewUnsaved, unsavedSettings } from '../pages/preview-router.ts'
import { previewHeaders } from './headers.ts'

/**
 * A sign-in page with settings that are not saved, for a frame of the console. A form asks for it, because it has to
 * have an address of its own: made of a text in the console's page, it would be under the policy of that page, which
 * allows no styles in it.
 */
export const readPreview = async (request: IncomingMessage, baseUrl: string) => {
  const { settings, ...query } = await readFormBody(request, { limit: 262_144 })
  const html = previewUnsaved(parseInput(previewQuery, query), parseInput(settingsField, settings))
  const [, styles = ''] = /<style>([^<]*)<\/style>/.exec(html) ?? []
  return {
    // The console may have an origin of its own, which has no pictures.
    content: html.replaceAll('"/assets/', `"${baseUrl}/assets/`),
    headers: previewHeaders(`sha256-${createHash('sha256').update(styles).digest('base64')}`),
  }
}

const settingsField = z
  .string()
  .transform((text, context) => {
    try {
      return JSON.parse(text) as unknown
    } catch {
      context.addIssue({ code: 'custom', message: 'must be JSON' })
      return z.NEVER
    }
  })
  .pipe(unsavedSettings)
