import { randomBytes } from 'node:crypto'
import { ExchangeClient, HttpTransport, InfoClient } from '@nktkas/hyperliquid'
import type { PrivateKeyAccount } from 'viem/accounts'
import { accountOf, type RunningVenue } from './venue.ts'

export type Trader = {
  wallet: PrivateKeyAccount
  user: `0x${string}`
  info: InfoClient
  exchange: ExchangeClient
}

/** A funded account, operated through the published client. */
export const traderAt = async (venue: RunningVenue, number: number, usd = '10000'): Promise<Trader> => {
  const wallet = accountOf(number)
  const user = wallet.address.toLowerCase() as `0x${string}`
  if (usd !== '0') await venue.control('POST', '/credit', { user, amount: usd })
  const transport = new HttpTransport({ apiUrl: venue.url, rpcUrl: venue.url })
  return {
    wallet,
    user,
    info: new InfoClient({ transport }),
    exchange: new ExchangeClient({ transport, wallet }),
  }
}

export const newCloid = (): `0x${string}` => `0x${randomBytes(16).toString('hex')}`

/** Posts the body directly, without a client in between. */
export const postRaw = async (
  venue: RunningVenue,
  body: unknown,
  endpoint = 'info',
): Promise<{ status: number; text: string }> => {
  const response = await fetch(`${venue.url}/${endpoint}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, text: await response.text() }
}

/** The text of the error that the client throws, from the answer and not from its message. */
export const errorOf = async (run: Promise<unknown>): Promise<string> => {
  try {
    await run
  } catch (error) {
    const { response } = error as { response?: { response: string | { data: { statuses: unknown[] } } } }
    if (!response) throw error
    if (typeof response.response === 'string') return response.response
    const statuses = response.response.data.statuses as (string | { error?: string })[]
    return statuses
      .map((status) => (typeof status === 'string' ? status : (status.error ?? 'ok')))
      .join(' | ')
  }
  throw new Error('The request succeeded')
}
