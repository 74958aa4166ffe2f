import { urlLengthMax } from '#features/notifications/webhooks-contract.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { conflict, invalid } from '#kernel/contract/fault.ts'
import type { WebhooksDeps } from './deps.ts'
import { isVisible } from './webhook-access.ts'
import type { Webhook } from './webhook-store.ts'

/** Checks the address of a webhook. */

/** Returns the address in its canonical spelling, without a fragment, which is never sent. */
export function parseWebhookUrl(text: string, { http }: WebhooksDeps): string {
  const reason = http.refusalOf(text)
  if (reason !== undefined)
    throw invalid(
      'url',
      'url_not_allowed',
      `Input should be an https address with the default port that is reachable from the internet: ${reason}`,
    )
  const url = new URL(text)
  url.hash = ''
  if (url.href.length > urlLengthMax)
    throw invalid(
      'url',
      'string_too_long',
      `Input should have at most ${urlLengthMax} characters, as it is sent`,
      { max_length: urlLengthMax },
    )
  return url.href
}

const urlTaken = ({ webhook_id: id }: Webhook) =>
  conflict(
    'A webhook has this address already: `webhooks_update` changes it',
    `webhook ${id} has this address`,
  )

/** Throws if another webhook that the caller sees has the address of `other`. */
export const assertUnused = (
  all: readonly Webhook[],
  caller: Caller,
  other: { url: string; id?: string },
) => {
  const twin = all.find(
    (each) => each.url === other.url && each.webhook_id !== other.id && isVisible(each, caller),
  )
  if (twin) throw urlTaken(twin)
}
