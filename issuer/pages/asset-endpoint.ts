import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Query } from '../../platform/database/database.ts'
import type { Logger } from '../../platform/logger.ts'
import { findStoredAsset } from '../directory/assets/asset-store.ts'
import { assetPath } from '../directory/sign-in-experience/links.ts'
import { type Asset, findAsset, type SendAssetOptions, sendAsset } from './assets.ts'
import type { Brandings } from './branding.ts'

/** `GET|HEAD /assets/*`: our stylesheet and icon, stylesheets of operators, and pictures that they uploaded. */
export type AssetEndpoint = (request: IncomingMessage, response: ServerResponse, requestId: string) => Promise<void>

const brandingFolder = '/assets/branding/'

export const createAssetEndpoint = ({
  query,
  brandings,
  logger,
}: {
  query: Query
  brandings: Brandings
  logger: Logger
}): AssetEndpoint => {
  const find = async (path: string): Promise<[Pick<Asset, 'type' | 'content'>, SendAssetOptions?] | undefined> => {
    const ours = findAsset(path)
    // Pictures stand in previews of the console, which have no origin.
    if (ours) return [ours, { isShared: ours.type.startsWith('image/') }]
    if (path.startsWith(brandingFolder)) {
      const sheet = await brandings.stylesheet(path.slice(brandingFolder.length))
      const file = sheet && { type: 'text/css; charset=utf-8', content: Buffer.from(sheet.css) }
      return file && [file, { isMutable: !sheet.isCurrent }]
    }
    const picture = assetPath.test(path) ? await findStoredAsset(query, path.slice('/assets/'.length)) : undefined
    return picture && [picture, { isShared: true }]
  }

  return async (request, response, requestId) => {
    const [path = '/'] = (request.url ?? '/').split('?', 1)
    try {
      const found = await find(path)
      if (found) sendAsset(response, ...found)
      else refuse(response, 404)
    } catch (error) {
      logger.warn({ err: error, requestId }, 'a file of the pages could not be read')
      refuse(response, 503)
    }
  }
}

const refuse = (response: ServerResponse, status: number) => {
  response.writeHead(status, { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
  response.end()
}
