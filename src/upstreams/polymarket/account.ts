import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { fits } from '#kernel/contract/fits-schema.ts'
import type * as T from '#kernel/contract/schema.ts'
import type { WalletKind } from '#kernel/money/prediction-actions.ts'
import type {
  BalanceAsset,
  PredictionVenue,
  VenueBalance,
  VenueCredentials,
} from '#kernel/money/prediction-venue.ts'
import { keyHeaders, ownerHeaders } from './auth-headers.ts'
import { baseUnitsOf, dateOf } from './decimals.ts'
import { signatureTypes } from './digests.ts'
import { protocolOf } from './outcome-ids.ts'
import { parseOrder, parseTrade } from './parse-account.ts'
import type { Call, Requests } from './requests.ts'
import {
  AnyAnswer,
  ApiKey,
  ApiKeys,
  BalanceAllowance,
  ClosedOnly,
  CursorPage,
  Geoblock,
  Notifications,
  WireOrder,
  WireTrade,
} from './wire-clob.ts'

/** Keys, orders, trades and balances of one owner, as the order book's service has them. */

/** Adds the headers that prove the owner's key; the time of the request is part of them. */
export type Authorize = (call: Call, credentials: VenueCredentials) => Call

export const createAuthorize =
  (clock: Clock): Authorize =>
  (call, credentials) => {
    const { method = 'GET', path, body = '' } = call
    const timestampSeconds = Math.floor(clock.now().getTime() / 1_000)
    return { ...call, headers: keyHeaders(credentials, { method, path, body, timestampSeconds }) }
  }

type AccountCalls = Pick<
  PredictionVenue,
  | 'access'
  | 'isClosedOnly'
  | 'signInAction'
  | 'signIn'
  | 'keys'
  | 'deleteKey'
  | 'openOrders'
  | 'order'
  | 'trades'
  | 'balance'
  | 'refreshBalance'
  | 'notifications'
>
type AccountDeps = { requests: Requests; authorize: Authorize; clock: Clock }

const endCursor = 'LTE='
/** A list is read up to this many pages; a longer one has to be narrowed by the caller. */
const pagesMax = 100

const clob = (path: string, query: Call['query'] = {}): Call => ({ service: 'clob', path, query })

const assetQuery = (asset: BalanceAsset, kind: WalletKind): Record<string, string> => {
  const signature_type = String(signatureTypes[kind])
  if (asset === 'cash') return { asset_type: 'COLLATERAL', signature_type }
  const asset_type = protocolOf(asset.outcomeId) === 'v2' ? 'CONDITIONAL-V2' : 'CONDITIONAL'
  return { asset_type, token_id: asset.outcomeId, signature_type }
}

export function createAccountCalls({ requests, authorize, clock }: AccountDeps): AccountCalls {
  const { read, readOptional } = requests
  const readAs = <S extends T.TSchema>(call: Call, credentials: VenueCredentials, schema: S) =>
    read(authorize(call, credentials), schema)

  /** Reads all pages; a record of an unknown form fails the whole list, because a missing order is worse than none. */
  async function list<S extends T.TSchema>(
    call: Call,
    credentials: VenueCredentials,
    schema: S,
  ): Promise<T.Static<S>[]> {
    const records: T.Static<S>[] = []
    let cursor: string | undefined
    for (let page = 0; page < pagesMax; page += 1) {
      const query = { ...call.query, next_cursor: cursor }
      const { data, next_cursor } = await readAs({ ...call, query }, credentials, CursorPage)
      for (const record of data) {
        if (!fits(schema, record))
          throw new Fault('upstream_changed', `Polymarket listed a record of an unknown form in ${call.path}`)
        records.push(record)
      }
      if (!next_cursor || next_cursor === endCursor) return records
      cursor = next_cursor
    }
    throw new Fault(
      'upstream_rejected',
      `Polymarket lists too much in ${call.path}; narrow it by market or time`,
    )
  }

  async function balance(path: string, query: Record<string, string>, credentials: VenueCredentials) {
    const found = await readAs(clob(path, query), credentials, BalanceAllowance)
    const allowances = Object.entries(found.allowances ?? {}).map(([spender, units]) => ({
      spender,
      units: baseUnitsOf(units),
    }))
    return { balanceUnits: baseUnitsOf(found.balance), allowances } satisfies VenueBalance
  }

  return {
    async access() {
      const { blocked, country } = await read({ service: 'geoblock', path: '/api/geoblock' }, Geoblock)
      return { isBlocked: blocked, country: country ?? null }
    },
    async isClosedOnly(credentials) {
      const path = '/auth/ban-status/closed-only'
      return (await readAs(clob(path), credentials, ClosedOnly)).closed_only
    },
    signInAction: (owner) => ({
      type: 'sign_in',
      owner,
      timestampSeconds: Math.floor(clock.now().getTime() / 1_000),
      nonce: 0n,
    }),
    async signIn({ owner, timestampSeconds, nonce }, signature) {
      const headers = ownerHeaders(owner, { signature, timestampSeconds, nonce })
      const create = () => read({ ...clob('/auth/api-key'), method: 'POST', headers }, ApiKey)
      const derive = () => read({ ...clob('/auth/derive-api-key'), headers }, ApiKey)
      // The venue refuses to create a key twice, which is the only refusal with this code.
      const found = await create().catch((error: unknown) => {
        if (error instanceof Fault && error.code === 'upstream_rejected') return derive()
        throw error
      })
      return { owner, key: found.apiKey, secret: found.secret, passphrase: found.passphrase }
    },
    async keys(credentials) {
      return (await readAs(clob('/auth/api-keys'), credentials, ApiKeys)).apiKeys
    },
    async deleteKey(credentials) {
      await readAs({ ...clob('/auth/api-key'), method: 'DELETE' }, credentials, AnyAnswer)
    },
    async openOrders({ marketId, outcomeId }, credentials) {
      const call = clob('/data/orders', { market: marketId, asset_id: outcomeId })
      return (await list(call, credentials, WireOrder)).map(parseOrder)
    },
    async order(orderId, credentials) {
      const call = clob(`/data/order/${encodeURIComponent(orderId)}`)
      const found = await readOptional(authorize(call, credentials), WireOrder)
      return found && parseOrder(found)
    },
    async trades({ marketId, outcomeId, tradeId, since, until }, wallet, credentials) {
      const secondsOf = (at: Date | undefined) => at && String(Math.floor(at.getTime() / 1_000))
      const call = clob('/data/trades', {
        id: tradeId,
        market: marketId,
        asset_id: outcomeId,
        maker_address: wallet.wallet,
        after: secondsOf(since),
        before: secondsOf(until),
      })
      const records = await list(call, credentials, WireTrade)
      return records.flatMap((record) => parseTrade(record, { wallet: wallet.wallet, key: credentials.key }))
    },
    balance: (asset, kind, credentials) =>
      balance('/balance-allowance', assetQuery(asset, kind), credentials),
    refreshBalance: (asset, kind, credentials) =>
      balance('/balance-allowance/update', assetQuery(asset, kind), credentials),
    async notifications(kind, credentials) {
      const call = clob('/notifications', { signature_type: String(signatureTypes[kind]) })
      const found = await readAs(call, credentials, Notifications)
      return found.map(({ id, type, timestamp, payload }) => ({ id, type, at: dateOf(timestamp), payload }))
    },
  }
}
