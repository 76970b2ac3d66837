import { createHash } from 'node:crypto'
import { captchaDefaults } from '../../issuer/captcha/captcha-settings.ts'
import type { Visit } from './browser.ts'

/** The test for machines, done at once: what is no test of the work itself does not wait for it. */
export const easyCaptcha = { ...captchaDefaults, difficulty: 8 }

/** Does the work of a challenge as the script of our pages does it. */
export const solve = (challenge: string, difficulty: number): string => {
  const [, mac] = challenge.split('.')
  for (let number = 0; ; number++) {
    const digest = createHash('sha256').update(`${mac}.${number}`).digest()
    if (Math.clz32(digest.readUInt32BE()) >= difficulty) return `${challenge}.${number}`
  }
}

/** The same, of the challenge that a page shows. */
export const solvedOn = ({ text }: Visit): string => {
  const [, challenge = '', difficulty = ''] = /data-challenge="([^"]+)" data-difficulty="(\d+)"/.exec(text) ?? []
  return solve(challenge, Number(difficulty))
}
