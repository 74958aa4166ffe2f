import type { Clock } from '#kernel/clock.ts'
import { notFound } from '#kernel/fault.ts'
import type { EvmScheme, PolicyReceipt, Signer } from '#kernel/signer.ts'
import type { Queryable } from '#store/query.ts'
import type { Keystore } from './keystore.ts'
import { judgeIntent, judgeReceipt, type SigningChain } from './signing-rules.ts'
import { sealedWallet } from './store.ts'

type Needs = {
  /**
   * A pool of its own: signatures are made inside a transaction, and a pool whose connections are all in such
   * transactions would have none left for this one.
   */
  on: Queryable
  keystore: Pick<Keystore, 'lend'>
  scheme: EvmScheme
  chains: readonly SigningChain[]
  clock: Clock
  /** Whether the policy of this process made the receipt. */
  genuine: (receipt: PolicyReceipt) => boolean
}

export function custodySigner({ on, keystore, scheme, chains, clock, genuine }: Needs): Signer {
  const chainOf = new Map(chains.map((each) => [each.chainId, each]))
  return {
    async signBatch(given, receipt) {
      // What is judged is what is signed: nobody changes the intent while the key is fetched.
      const intent = structuredClone(given)
      judgeReceipt({ intent, receipt, now: clock.now(), genuine: genuine(receipt) })
      const wallet = await sealedWallet(on, intent.userId, 'evm')
      if (!wallet) throw notFound('wallet')
      const chain = chainOf.get(intent.chainId)
      judgeIntent({ intent, own: wallet.address, chain, now: clock.now(), readCall: scheme.readCall })
      return keystore.lend(wallet, async (secret) => ({
        signature: await scheme.signBatch(secret, intent.batch),
        delegation: intent.delegation ? await scheme.signDelegation(secret, intent.delegation) : null,
      }))
    },
  }
}
