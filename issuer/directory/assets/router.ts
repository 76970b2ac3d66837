import { z } from 'zod'
import { queryOf } from '../../../platform/database/database.ts'
import { sha256 } from '../../../platform/secret.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Mutate } from '../../base/mutate.ts'
import { type Route, route } from '../../base/route.ts'
import { insertAsset } from './asset-store.ts'
import { maxPictureBytes, pictureOf } from './picture.ts'

export interface AssetDependencies {
  mutate: Mutate
}

const upload = z.object({
  content: z
    .base64()
    .min(1)
    .max(Math.ceil(maxPictureBytes / 3) * 4)
    .describe('The picture, as base64.'),
})

const asset = z.object({
  url: z.string().describe('The path to set in `branding`, or to name in `customCss`. It never changes.'),
  type: z.string(),
  bytes: z.int(),
})

export const assetsRoutes = ({ mutate }: AssetDependencies): Route[] => [
  route({
    method: 'POST',
    path: '/assets',
    operationId: 'createAsset',
    summary: 'Stores a picture for the pages: PNG, JPEG, WebP, GIF or SVG, of at most 500 kB.',
    scope: 'sign-in',
    body: upload,
    status: 201,
    response: asset,
    problems: ['asset.type_not_supported', 'asset.too_large'],
    async handle(context) {
      const content = Buffer.from(context.body.content, 'base64')
      if (content.length > maxPictureBytes) throw problem('asset.too_large')
      const picture = pictureOf(content)
      if (!picture) throw problem('asset.type_not_supported')
      const { type, extension } = picture
      const id = `${sha256(content).toString('hex')}.${extension}`
      await mutate(context, ({ trx }) => insertAsset(queryOf(trx), { id, type, content }))
      return { body: { url: `/assets/${id}`, type, bytes: content.length } }
    },
  }),
]
