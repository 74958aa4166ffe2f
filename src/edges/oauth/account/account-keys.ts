import { actingScopes } from '#edges/oauth/paths-and-scopes.ts'
import type { CreatePersonKey } from '#features/auth/access-keys.ts'
import { keyDaysMax } from '#kernel/contract/access-key.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { AccountRequest, AccountStep, Message } from './account-request.ts'

/** Only somebody who has just signed in, in this session, may make a key; everybody who is signed in may revoke one. */

const nameMax = 64

export type AccountKeysDeps = {
  createPersonKey: CreatePersonKey
  endApp: (personId: string, clientId: string) => Promise<void>
  creditsOf: (text: string | undefined) => number
}

export function accountKeys(
  { createPersonKey, endApp, creditsOf }: AccountKeysDeps,
  show: (asked: AccountRequest, message: Message) => Promise<void>,
): Record<string, AccountStep> {
  return {
    async 'key-make'(asked, form) {
      if (!asked.isFresh)
        return show(asked, {
          status: 403,
          error: 'Sign in again first: keys are made right after a sign-in.',
        })
      const name = (form.name ?? '').replace(/\p{Cc}/gu, '').trim()
      const days = Number(form.days)
      if (name === '' || name.length > nameMax)
        return show(asked, { status: 422, error: `Say what the key is for, in up to ${nameMax} characters.` })
      if (!Number.isInteger(days) || days < 1 || days > keyDaysMax)
        return show(asked, { status: 422, error: `A key lives from 1 to ${keyDaysMax} days.` })
      const scopes = actingScopes.filter((scope) => form[scope] === 'yes')
      const credits = scopes.includes('chat') ? { creditsPerDay: creditsOf(form.chat_credits) } : {}
      const terms = { name, days, scopes, ...credits }
      try {
        const { key } = await createPersonKey(asked.person, terms, asked.request.ip)
        await show(asked, { madeKey: { name, key } })
      } catch (error) {
        if (!(error instanceof Fault)) throw error
        await show(asked, { status: error.status, error: error.message })
      }
    },
    async 'key-revoke'(asked, { client_id: clientId = '' }) {
      await endApp(asked.person.id, clientId)
      await show(asked, { notice: 'The key is revoked.' })
    },
  }
}
