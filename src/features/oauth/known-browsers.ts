import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Random } from '#kernel/id.ts'
import type { OAuthKeys } from './server-keys.ts'

/**
 * A known browser is one in which a person has signed in before. Guesses of strangers never use up the budget of such a
 * browser, so they cannot lock the person out. Its token grants this budget and nothing else.
 */
export type KnownBrowsers = {
  tokenFor(personId: string): Promise<string>
  /** Returns the name of the browser if it is known for this person. */
  find(token: string | undefined, personId: string): Promise<string | undefined>
}

const form = /^([\w-]{22})\.([\w-]{43})$/

const signatureOf = (key: string, personId: string, id: string): Buffer =>
  createHmac('sha256', key).update(`known browser|${personId}|${id}`).digest()

type KnownBrowsersDeps = { keys: Pick<OAuthKeys, 'current'>; random: Random }

export function createKnownBrowsers({ keys, random }: KnownBrowsersDeps): KnownBrowsers {
  return {
    async tokenFor(personId) {
      const { cookies } = await keys.current()
      const id = Buffer.from(random.bytes(16)).toString('base64url')
      return `${id}.${signatureOf(cookies[0]!, personId, id).toString('base64url')}`
    },
    async find(token, personId) {
      const [, id, signature] = form.exec(token ?? '') ?? []
      if (id === undefined || signature === undefined) return undefined
      const given = Buffer.from(signature, 'base64url')
      const { cookies } = await keys.current()
      return cookies.some((key) => timingSafeEqual(signatureOf(key, personId, id), given)) ? id : undefined
    },
  }
}
