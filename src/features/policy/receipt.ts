import type { PolicyReceipt } from '#kernel/task/signer.ts'

export type Receipts = {
  make(facts: Pick<PolicyReceipt, 'id' | 'userId' | 'taskId' | 'intentHash' | 'expiresAt'>): PolicyReceipt
  /** Whether `make` returned this very object; a copy is not authentic. */
  isAuthentic(receipt: PolicyReceipt): boolean
}

export function createReceipts(): Receipts {
  const issued = new WeakSet<PolicyReceipt>()
  return {
    make(facts) {
      const receipt = Object.freeze({ ...facts }) as PolicyReceipt
      issued.add(receipt)
      return receipt
    },
    isAuthentic: (receipt) => issued.has(receipt),
  }
}
