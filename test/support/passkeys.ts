import type { CDPSession, Page } from 'playwright-core'

/** A security key of a person, as Chromium plays it: it verifies its user at once. */
export const attachAuthenticator = async (page: Page): Promise<{ session: CDPSession; authenticatorId: string }> => {
  const session = await page.context().newCDPSession(page)
  await session.send('WebAuthn.enable')
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true },
      ...{ isUserVerified: true, automaticPresenceSimulation: true },
    },
  })
  return { session, authenticatorId }
}
