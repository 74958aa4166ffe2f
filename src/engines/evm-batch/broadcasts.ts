import type { Evm } from '#upstreams/evm/evm.ts'
import type { SendVerdict } from '#upstreams/evm/wire.ts'

/** Sends the transactions of this instance to one chain, and records whether the node accepted the last one. */
export type Broadcasts = {
  send(raw: string): Promise<SendVerdict>
  isFailing(): boolean
  /** Calls the listener when broadcasts begin to fail, and again when the node accepts the first one after that. */
  onChange(listener: () => void): Disposable
}

export function createBroadcasts(chain: Pick<Evm, 'sendRaw'>): Broadcasts {
  const listeners = new Set<() => void>()
  let isFailing = false
  const note = ({ fails }: { fails: boolean }) => {
    if (fails === isFailing) return
    isFailing = fails
    for (const listener of listeners) listener()
  }
  return {
    async send(raw) {
      try {
        const answer = await chain.sendRaw(raw)
        // A used nonce, a low fee or a wrong gas limit says nothing about other transactions.
        if (answer.verdict === 'accepted') note({ fails: false })
        if (answer.verdict === 'rejected') note({ fails: true })
        return answer
      } catch (error) {
        note({ fails: true })
        throw error
      }
    },
    isFailing: () => isFailing,
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
  }
}
