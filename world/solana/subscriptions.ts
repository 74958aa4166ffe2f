import { accountView, readViewOptions } from './account-view.ts'
import type { Chain, Commitment } from './chain.ts'
import type { LandedTransaction } from './execution.ts'
import { accountFilter } from './methods-accounts.ts'
import { apiVersion } from './methods-cluster.ts'
import {
  addressAt,
  addressOf,
  commitmentOf,
  configAt,
  flagOf,
  type Params,
  recordOf,
  signatureAt,
} from './params.ts'
import { invalidParams, RpcError } from './rpc-error.ts'
import { errorOf } from './transaction-view.ts'

const subscriptionsMax = 1_000
const rootDepth = 32

type Notify = (result: unknown) => void
type Delayed = { slot: number; commitment: Commitment; send: () => void; id: number }
type Subscription = {
  method: string
  notify: Notify
  landed?: (landed: LandedTransaction) => void
  tick?: () => void
}

/** One client's subscriptions: an event is sent when it reaches the requested commitment. */
export const subscriptions = (
  chain: Chain,
  sendNotification: (method: string, id: number, result: unknown) => void,
) => {
  const open = new Map<number, Subscription>()
  let delayed: Delayed[] = []
  let lastId = 0
  let lastSlot = chain.slotAt('processed')

  const context = (slot: number, value: unknown) => ({ context: { apiVersion, slot }, value })

  const deliver = (): void => {
    const due = delayed.filter(({ slot, commitment }) => slot <= chain.slotAt(commitment))
    if (due.length === 0) return
    delayed = delayed.filter((each) => !due.includes(each))
    for (const { id, send } of due) if (open.has(id)) send()
  }

  const add = (
    method: string,
    make: (id: number, notify: Notify) => Omit<Subscription, 'method' | 'notify'>,
  ) => {
    if (open.size >= subscriptionsMax) throw new RpcError(-32000, 'Too many subscriptions on this connection')
    lastId += 1
    const id = lastId
    const notify: Notify = (result) => sendNotification(method, id, result)
    open.set(id, { method, notify, ...make(id, notify) })
    return id
  }

  const deliverAt = (id: number, slot: number, commitment: Commitment, send: () => void): void => {
    delayed.push({ id, slot, commitment, send })
    deliver()
  }

  const view = (address: string, config: ReturnType<typeof configAt>) => {
    const account = chain.account(address)
    const empty = { data: Buffer.alloc(0), executable: false, lamports: 0n, owner: '1'.repeat(32) }
    return accountView(account ?? empty, readViewOptions(config), chain.account)
  }

  const methods: Record<string, (params: Params) => unknown> = {
    signatureSubscribe: (params) => {
      const signature = signatureAt(params, 0)
      const config = configAt(params, 1)
      const commitment = commitmentOf(config)
      const received = flagOf(config, 'enableReceivedNotification')
      const id = add('signatureNotification', (own, notify) => {
        const finish = (slot: number, err: unknown) =>
          deliverAt(own, slot, commitment, () => {
            notify(context(slot, { err }))
            // A node ends this subscription by itself.
            open.delete(own)
          })
        return {
          landed: (landed) => {
            if (landed.signature !== signature) return
            if (received) notify(context(landed.slot, 'receivedSignature'))
            finish(landed.slot, landed.err)
          },
          /** The transaction may have landed before the subscription. */
          tick: () => {
            const row = chain.ledger.find(signature)
            const waiting = delayed.some((each) => each.id === own)
            if (row && !waiting) finish(row.slot, errorOf(row.err))
          },
        }
      })
      return id
    },
    accountSubscribe: (params) => {
      const address = addressAt(params, 0)
      const config = configAt(params, 1)
      const commitment = commitmentOf(config)
      readViewOptions(config)
      return add('accountNotification', (id, notify) => ({
        landed: ({ slot, writable }) => {
          if (!writable.includes(address)) return
          const value = view(address, config)
          deliverAt(id, slot, commitment, () => notify(context(slot, value)))
        },
      }))
    },
    programSubscribe: (params) => {
      const program = addressAt(params, 0)
      const config = configAt(params, 1)
      const commitment = commitmentOf(config)
      const matches = accountFilter(config)
      return add('programNotification', (id, notify) => ({
        landed: ({ slot, writable }) => {
          for (const pubkey of writable) {
            const account = chain.account(pubkey)
            if (account?.owner !== program || !matches(account)) continue
            const value = { account: view(pubkey, config), pubkey }
            deliverAt(id, slot, commitment, () => notify(context(slot, value)))
          }
        },
      }))
    },
    logsSubscribe: (params) => {
      const [filter] = params
      const all = filter === 'all' || filter === 'allWithVotes'
      const mentions = all ? undefined : recordOf(filter).mentions
      if (!all && !(Array.isArray(mentions) && mentions.length === 1))
        throw invalidParams('Invalid Request: Only 1 address supported')
      const address = Array.isArray(mentions) ? addressOf(mentions[0]) : undefined
      const commitment = commitmentOf(configAt(params, 1))
      return add('logsNotification', (id, notify) => ({
        landed: ({ signature, slot, err, logs, keys }) => {
          if (address !== undefined && !keys.includes(address)) return
          deliverAt(id, slot, commitment, () => notify(context(slot, { err, logs, signature })))
        },
      }))
    },
    slotSubscribe: () => add('slotNotification', () => ({})),
    rootSubscribe: () => add('rootNotification', () => ({})),
  }

  const end = (params: Params): boolean => {
    const [id] = params
    if (typeof id !== 'number' || !open.delete(id)) throw invalidParams('Invalid subscription id.')
    delayed = delayed.filter((each) => each.id !== id)
    return true
  }
  for (const kind of ['signature', 'account', 'program', 'logs', 'slot', 'root'])
    methods[`${kind}Unsubscribe`] = end

  const stopListening = chain.onLanded((landed) => {
    for (const each of [...open.values()]) each.landed?.(landed)
  })

  return {
    methods,
    /** Advances time: slots, roots, and events that have reached their commitment. */
    tick: (): void => {
      const slot = chain.slotAt('processed')
      for (let at = Math.max(lastSlot + 1, slot - rootDepth); at <= slot; at++)
        for (const { method, notify } of open.values()) {
          if (method === 'slotNotification') notify({ parent: at - 1, root: at - rootDepth, slot: at })
          if (method === 'rootNotification') notify(at - rootDepth)
        }
      lastSlot = slot
      for (const each of [...open.values()]) each.tick?.()
      deliver()
    },
    close: (): void => {
      stopListening()
      open.clear()
      delayed = []
    },
  }
}
