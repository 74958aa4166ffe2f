import { type PorticoOptions, portico } from './client.ts'
import { ConflictError } from './errors.ts'
import { createKeyPair, type KeyPair } from './key-pair.ts'

export type Registration = Pick<PorticoOptions, 'baseUrl' | 'fetch' | 'timeoutMs'> & {
  /** The key pair to register. Default: a new pair. */
  keyPair?: KeyPair | undefined
  agentName?: string | undefined
}
export type Agent = { agentId: string; secretKey: string }

/** Registers a key pair and proves it; a pair that is already registered returns its agent. */
export async function registerAgent({ keyPair, agentName, ...options }: Registration): Promise<Agent> {
  const { publicKey, secretKey, sign } = keyPair ?? (await createKeyPair())
  const { auth } = portico(options)
  try {
    const { nonce, challenge } = await auth.register({
      public_key: publicKey,
      ...(agentName !== undefined && { agent_name: agentName }),
    })
    const { agent_id } = await auth.verify({ nonce, signature: await sign(challenge) })
    return { agentId: agent_id, secretKey }
  } catch (error) {
    const known = error instanceof ConflictError ? error.extras.agent_id : undefined
    if (typeof known !== 'string') throw error
    return { agentId: known, secretKey }
  }
}
