import ccxt from 'ccxt'
import { accountOf, keyOf } from '../venue/venue.ts'
import type { PredictionUrls } from './prediction.ts'

/** Without it the client signs its own builder code into every order. */
const zeroBuilder = `0x${'0'.repeat(64)}`

/** Signs for the exchange of the second protocol. */
export const exchangeV3Options = {
  ctfExchangeVersion: '3',
  exchangeAddress: '0xe3333700cA9d93003F00f0F71f8515005F6c00Aa',
}

/** ccxt's own client of this venue, unmodified: for an ordinary account, or for the deposit wallet of its key. */
export const ccxtClientAt = (
  { gamma, clob, data, socket }: PredictionUrls,
  number: number,
  { depositWallet, ...options }: { depositWallet?: string } & Record<string, unknown> = {},
) =>
  new ccxt.prediction.polymarket({
    privateKey: keyOf(number),
    walletAddress: depositWallet ?? accountOf(number).address,
    enableRateLimit: false,
    urls: { api: { gamma, clob, data, ws: `${socket}/market`, wsUser: `${socket}/user` } },
    options: { signatureType: depositWallet ? 3 : 0, builder: zeroBuilder, ...options },
  })
