import type { Log } from '#kernel/log.ts'
import { gauge, type Metric } from '#kernel/metrics.ts'
import type { Queryable } from '#store/query.ts'
import type { Keystore, UnusableKek } from './keystore.ts'

const problemText = ({ kekId, reason }: UnusableKek): string =>
  reason === 'absent'
    ? `KEY_ENCRYPTION_KEYS: wallets are sealed under the key ${kekId}, which is not in the list; append it`
    : `KEY_ENCRYPTION_KEYS: the key ${kekId} does not unwrap the wallets that were sealed under this id; set the original key`

type KeyMonitorDeps = { keystore: Pick<Keystore, 'unusableKeyEncryptionKeys'>; db: Queryable; log: Log }

/** Whether every key-encryption key in use unwraps its keys: checked at start and every minute. */
export function createKeyMonitor({ keystore, db, log }: KeyMonitorDeps) {
  let closed: readonly UnusableKek[] = []
  let isChecked = false
  const check = async () => {
    closed = await keystore.unusableKeyEncryptionKeys(db)
    isChecked = true
    if (closed.length > 0) log.error({ keys: closed }, 'key-encryption keys in use do not unwrap their keys')
  }
  return {
    check,
    /** Returns wrong or missing key-encryption keys, so that no wallet is sealed under a misconfiguration. */
    async findProblems(): Promise<string[]> {
      // An unavailable key service is not a wrong key: signing fails until it is back, and health reports it.
      await check().catch((error: unknown) => log.error({ error }, 'could not check the key-encryption keys'))
      return closed.map(problemText)
    },
    status: (): 'ok' | 'degraded' => (isChecked && closed.length === 0 ? 'ok' : 'degraded'),
    metrics: (): Metric[] => [
      gauge(
        'portico_key_encryption_keys_unusable',
        'Key-encryption keys in use that are missing or do not unwrap their keys',
        closed.length,
      ),
      gauge(
        'portico_key_encryption_keys_checked',
        '1 once the key-encryption keys could be checked',
        isChecked ? 1 : 0,
      ),
    ],
  }
}
