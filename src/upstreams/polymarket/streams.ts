import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { PredictionVenue, StreamListener } from '#kernel/money/prediction-venue.ts'
import type { Own } from './parse-account.ts'
import { parseMarketFrame, parseUserFrame } from './parse-frames.ts'
import { openStreamSocket, type StreamSocket } from './stream-socket.ts'
import { walletsOf } from './wallet-addresses.ts'

type StreamDeps = { url: string; random: Pick<Random, 'fraction'>; log: Log }

/** How many characters of an unreadable frame are logged. */
const loggedMax = 200

export function createStreams(deps: StreamDeps): Pick<PredictionVenue, 'streamUser' | 'streamMarkets'> {
  const { url, random, log } = deps

  /** Isolates listeners: one that throws ends neither the stream nor the process. */
  function guard(run: () => void): void {
    try {
      run()
    } catch (error) {
      log.error({ error }, 'listener of the prediction market failed')
    }
  }

  function open<T>(
    path: string,
    subscription: () => unknown,
    { parse, listener }: { parse: (frame: unknown) => T[] | undefined; listener: StreamListener<T> },
  ): StreamSocket {
    const onGap = () => guard(() => listener.onGap?.())
    return openStreamSocket({
      url: `${url}${path}`,
      subscription,
      random,
      log,
      onGap,
      onFrame(frame) {
        const updates = parse(frame)
        if (updates === undefined) {
          log.debug(
            { frame: JSON.stringify(frame)?.slice(0, loggedMax) },
            'unreadable frame of the prediction market',
          )
          onGap()
        } else for (const update of updates) guard(() => listener.onUpdate(update))
      },
    })
  }

  return {
    streamUser(credentials, listener) {
      const { owner, key, secret, passphrase } = credentials
      const subscription = () => ({ type: 'user', auth: { apiKey: key, secret, passphrase } })
      const owns: Own[] = walletsOf(owner).map(({ wallet }) => ({ wallet, key }))
      // A frame names the wallet of each leg, which is one of the owner's.
      const parse = (frame: unknown) => {
        const parsed = owns.map((own) => parseUserFrame(frame, own))
        const [first] = parsed
        if (first === undefined || first.some(({ type }) => type === 'order')) return first
        return parsed.flatMap((updates) => updates ?? [])
      }
      return open('/user', subscription, { parse, listener })
    },
    streamMarkets(outcomeIds, listener) {
      const subscription = () => ({
        type: 'market',
        assets_ids: outcomeIds,
        custom_feature_enabled: true,
      })
      return open('/market', subscription, { parse: parseMarketFrame, listener })
    },
  }
}
