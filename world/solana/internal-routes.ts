import type { Chain } from './chain.ts'
import { type FaucetGrant, findToken, grantOnce } from './faucet.ts'
import { readJson } from './json.ts'
import { addressOf, countOf, recordOf, u64Of } from './params.ts'
import { invalidParams, RpcError } from './rpc-error.ts'
import { worldTokens } from './tokens.ts'

type Answer = { status: number; body: unknown }
type Route = (text: string) => Answer

const advanceSecondsMax = 10 * 365 * 86_400
const idLengthMax = 200

const amountOf = (value: unknown): bigint =>
  u64Of(typeof value === 'string' && /^\d{1,20}$/.test(value) ? BigInt(value) : value, 'amount_units')

const readGrant = (text: string): FaucetGrant => {
  const { address, mint, symbol, amount_units: amount, id } = recordOf(readJson(text))
  const name = mint ?? symbol
  if (typeof name !== 'string') throw invalidParams('name a mint, a symbol or native')
  if (id !== undefined && (typeof id !== 'string' || id === '' || id.length > idLengthMax)) {
    throw invalidParams(`id must be text of at most ${idLengthMax} characters`)
  }
  const token = /^(native|sol)$/i.test(name) ? 'native' : findToken(name)
  if (token === undefined) throw invalidParams(`this world has no token ${name}; see GET /tokens`)
  return {
    address: addressOf(address),
    token,
    amountUnits: amountOf(amount),
    ...(id === undefined ? {} : { id }),
  }
}

const secondsOf = (text: string): number => {
  const { advance_seconds: seconds } = recordOf(readJson(text))
  if (typeof seconds === 'number' && seconds >= 0 && seconds <= advanceSecondsMax) return seconds
  throw invalidParams(`advance_seconds must lie between 0 and ${advanceSecondsMax}`)
}

const withErrors =
  (run: Route): Route =>
  (text) => {
    try {
      return run(text)
    } catch (error) {
      if (error instanceof SyntaxError) return { status: 400, body: { detail: 'the body is not JSON' } }
      if (error instanceof RpcError) return { status: 400, body: { detail: error.message, data: error.data } }
      throw error
    }
  }

/** Routes that no public node has, for the other processes of the world only. */
export const internalRoutes = (chain: Chain): ReadonlyMap<string, Route> =>
  new Map([
    [
      'POST /clock',
      withErrors((text) => {
        chain.advance(Math.round(secondsOf(text) * 1000))
        return { status: 200, body: { now_ms: chain.time.nowMs(), slot: chain.time.current() } }
      }),
    ],
    [
      'POST /history',
      withErrors((text) => {
        const { stored_slots: count } = recordOf(readJson(text))
        chain.time.storeSlots(countOf(count, 'stored_slots', Number.MAX_SAFE_INTEGER))
        return { status: 200, body: { first_block: chain.time.firstBlock() } }
      }),
    ],
    [
      'POST /mint',
      withErrors((text) => ({ status: 200, body: { signature: grantOnce(chain, readGrant(text)) } })),
    ],
    [
      'GET /tokens',
      withErrors(() => ({
        status: 200,
        body: worldTokens.map(({ mint, symbol, name, decimals, program }) => ({
          mint,
          symbol,
          name,
          decimals,
          program,
        })),
      })),
    ],
  ])
