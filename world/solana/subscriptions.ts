import { accountView, readViewOptions } from './account-view.ts'
import type { Chain } from './chain.ts'
import { accountFilter } from './methods-accounts.ts'
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
import { invalidParams } from './rpc-error.ts'
import {
  createSubscriptionList,
  inContext,
  type SendNotification,
  type SubscriptionList,
} from './subscription-list.ts'
import { errorOf } from './transaction-view.ts'

type Subscribe = (params: Params, given: { chain: Chain; list: SubscriptionList }) => number

const viewAccount = (chain: Chain, address: string, config: ReturnType<typeof configAt>) => {
  const empty = { data: Buffer.alloc(0), executable: false, lamports: 0n, owner: '1'.repeat(32) }
  return accountView(chain.account(address) ?? empty, readViewOptions(config), chain.account)
}

const subscribeToSignature: Subscribe = (params, { chain, list }) => {
  const signature = signatureAt(params, 0)
  const config = configAt(params, 1)
  const commitment = commitmentOf(config)
  const received = flagOf(config, 'enableReceivedNotification')
  return list.add('signatureNotification', (id, notify) => {
    const finish = (slot: number, err: unknown) =>
      list.deliverAt(id, slot, commitment, () => {
        notify(inContext(slot, { err }))
        list.end(id)
      })
    return {
      landed: (landed) => {
        if (landed.signature !== signature) return
        if (received) notify(inContext(landed.slot, 'receivedSignature'))
        finish(landed.slot, landed.err)
      },
      /** The transaction may have landed before the subscription. */
      tick: () => {
        const row = chain.ledger.find(signature)
        if (row && !list.isWaiting(id)) finish(row.slot, errorOf(row.err))
      },
    }
  })
}

const subscribeToAccount: Subscribe = (params, { chain, list }) => {
  const address = addressAt(params, 0)
  const config = configAt(params, 1)
  const commitment = commitmentOf(config)
  readViewOptions(config)
  return list.add('accountNotification', (id, notify) => ({
    landed: ({ slot, writable }) => {
      if (!writable.includes(address)) return
      const value = viewAccount(chain, address, config)
      list.deliverAt(id, slot, commitment, () => notify(inContext(slot, value)))
    },
  }))
}

const subscribeToProgram: Subscribe = (params, { chain, list }) => {
  const program = addressAt(params, 0)
  const config = configAt(params, 1)
  const commitment = commitmentOf(config)
  const matches = accountFilter(config)
  return list.add('programNotification', (id, notify) => ({
    landed: ({ slot, writable }) => {
      for (const pubkey of writable) {
        const account = chain.account(pubkey)
        if (account?.owner !== program || !matches(account)) continue
        const value = { account: viewAccount(chain, pubkey, config), pubkey }
        list.deliverAt(id, slot, commitment, () => notify(inContext(slot, value)))
      }
    },
  }))
}

const subscribeToLogs: Subscribe = (params, { list }) => {
  const [filter] = params
  const all = filter === 'all' || filter === 'allWithVotes'
  const mentions = all ? undefined : recordOf(filter).mentions
  if (!all && !(Array.isArray(mentions) && mentions.length === 1))
    throw invalidParams('Invalid Request: Only 1 address supported')
  const address = Array.isArray(mentions) ? addressOf(mentions[0]) : undefined
  const commitment = commitmentOf(configAt(params, 1))
  return list.add('logsNotification', (id, notify) => ({
    landed: ({ signature, slot, err, logs, keys }) => {
      if (address !== undefined && !keys.includes(address)) return
      list.deliverAt(id, slot, commitment, () => notify(inContext(slot, { err, logs, signature })))
    },
  }))
}

const kinds: Record<string, Subscribe> = {
  signature: subscribeToSignature,
  account: subscribeToAccount,
  program: subscribeToProgram,
  logs: subscribeToLogs,
  slot: (_params, { list }) => list.add('slotNotification', () => ({})),
  root: (_params, { list }) => list.add('rootNotification', () => ({})),
}

/** One client's subscriptions: an event is sent when it reaches the requested commitment. */
export const subscriptions = (chain: Chain, sendNotification: SendNotification) => {
  const list = createSubscriptionList(chain, sendNotification)
  const methods: Record<string, (params: Params) => unknown> = {}
  for (const [kind, subscribe] of Object.entries(kinds)) {
    methods[`${kind}Subscribe`] = (params) => subscribe(params, { chain, list })
    methods[`${kind}Unsubscribe`] = list.unsubscribe
  }
  const stopListening = chain.onLanded(list.announce)
  return {
    methods,
    tick: list.tick,
    close: (): void => {
      stopListening()
      list.clear()
    },
  }
}
