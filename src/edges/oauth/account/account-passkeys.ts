import { refusals, sendJson } from '#edges/oauth/provider/sign-in-request.ts'
import { sendOptions } from '#edges/oauth/sign-in/passkey-sign-in.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import type { AccountRequest, AccountStep, Message } from './account-request.ts'

/** Only somebody who has just signed in, in this session, may change passkeys. */

const notFresh = 'Sign in again first: passkeys are changed right after a sign-in.'
const holderOf = ({ session }: AccountRequest): string => `session ${session.uid}`

export function accountPasskeys(
  passkeys: NonNullable<OAuth['passkeys']>,
  show: (asked: AccountRequest, message: Message) => Promise<void>,
): Record<string, AccountStep> {
  const ifFresh = async (asked: AccountRequest, run: () => Promise<void>): Promise<void> => {
    if (asked.isFresh) return run()
    await show(asked, { status: 403, error: notFresh })
  }
  return {
    async 'passkey-add-options'(asked) {
      if (!asked.isFresh) return sendJson(asked.exchange, 403, { error: 'fresh_sign_in_required' })
      sendOptions(asked.exchange, await passkeys.beginAdding(holderOf(asked), asked.person))
    },
    'passkey-add': (asked, { credential = '', name = '' }) =>
      ifFresh(asked, async () => {
        const added = await passkeys.add(holderOf(asked), asked.person, { credential, name })
        const message = added.ok
          ? { notice: 'The passkey was added. We send you a message about it.' }
          : { status: 422, error: refusals[added.why] }
        await show(asked, message)
      }),
    'passkey-remove': (asked, { id = '' }) =>
      ifFresh(asked, async () => {
        await passkeys.remove(asked.person, id)
        await show(asked, { notice: 'The passkey was removed.' })
      }),
  }
}
