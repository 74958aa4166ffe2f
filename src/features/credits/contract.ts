import { group, read } from '#kernel/operation.ts'
import * as T from '#kernel/schema.ts'
import { Dec, DecOrNull, Nullable, OneOf, TimeOrNull } from '#kernel/wire-types.ts'
import { bucketKinds } from './buckets.ts'

export const contract = group('credits', {
  available: read('GET /v1/credits', {
    summary: 'Credits that can be spent now, by origin',
    description:
      'Use it to see the credits left for paid operations. Amounts are whole credits, not USD. Next: `credits_packs` shows the packs.',
    access: 'read',
    output: T.Object(
      {
        credits_available: Nullable(T.Number()),
        credits_available_decimal: DecOrNull,
        buckets: T.Array(
          T.Object({ kind: OneOf(bucketKinds), credits: T.Integer(), expires_at: TimeOrNull }),
        ),
      },
      { $id: 'CreditsResponse' },
    ),
  }),
  packs: read('GET /credits/packs', {
    summary: 'The packs in which credits are sold',
    description:
      'Use it to see how many credits a pack holds and its price in USD. Nothing is bought by this call. Next: `credits_available` shows the present balance.',
    access: 'read',
    output: T.Object(
      {
        packs: T.Array(
          T.Object({ pack_id: T.String(), price_usd: Dec, credits: T.Integer() }, { $id: 'CreditPack' }),
        ),
      },
      { $id: 'CreditPacksResponse' },
    ),
  }),
})
