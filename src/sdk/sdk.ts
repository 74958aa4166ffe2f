/** The entry of `portico/sdk`. */
// biome-ignore-all lint/performance/noBarrelFile: the one list of what the package exports
export type { Api } from './api.ts'
export type { Call, ListCall, WithResponse } from './call.ts'
export { type Portico, type PorticoOptions, portico, type Task, type WaitOptions } from './client.ts'
export {
  AuthenticationError,
  BadRequestError,
  ConflictError,
  ConnectionError,
  type InputIssue,
  NotFoundError,
  PermissionError,
  PorticoError,
  RateLimitError,
  ServerError,
  ValidationError,
} from './errors.ts'
export type { FollowOptions, StreamEvent } from './event-stream.ts'
export { createKeyPair, importKeyPair, type KeyPair } from './key-pair.ts'
export { memoryTokenStore, oauthSession, signOut, type TokenStore } from './oauth-session.ts'
export {
  beginSignIn,
  completeSignIn,
  type OAuthTokens,
  type PendingSignIn,
  type SignInOptions,
} from './oauth-sign-in.ts'
export { type Agent, type Registration, registerAgent } from './register-agent.ts'
export type { Auth, TokenProvider } from './token-source.ts'
export type { CallOptions } from './transport.ts'
export { webTokenStore } from './web-token-store.ts'
