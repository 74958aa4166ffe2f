import { createHash } from 'node:crypto'

/**
 * This is the only script of the pages: it asks the browser for a passkey and submits it with the form. Without the
 * script, or without passkeys in the browser, the parts that are marked for passkeys stay hidden, and the pages work by
 * password and code.
 */
export const passkeyScript = `(() => {
  if (!window.PublicKeyCredential || !navigator.credentials) return
  for (const each of document.querySelectorAll('[data-with-passkeys]')) each.hidden = false
  for (const each of document.querySelectorAll('[data-without-passkeys]')) each.hidden = true
  const decode = (text) => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (each) => each.charCodeAt(0))
  const encode = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\\+/g, '-').replace(/\\//g, '_').replace(/=+$/, '')
  const withBytes = (options) => {
    options.challenge = decode(options.challenge)
    if (options.user) options.user.id = decode(options.user.id)
    for (const each of options.excludeCredentials ?? []) each.id = decode(each.id)
    return options
  }
  const ask = async ({ kind, options }) => {
    const reply = await fetch(options, { method: 'POST', body: new URLSearchParams(), credentials: 'same-origin' })
    if (!reply.ok) throw new Error(String(reply.status))
    const publicKey = withBytes(await reply.json())
    const made = kind === 'create' ? await navigator.credentials.create({ publicKey }) : await navigator.credentials.get({ publicKey })
    const response = {}
    for (const name of ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle'])
      if (made.response[name]) response[name] = encode(made.response[name])
    return JSON.stringify({ id: made.id, rawId: encode(made.rawId), type: made.type, response, clientExtensionResults: {} })
  }
  for (const form of document.querySelectorAll('form[data-kind]'))
    form.addEventListener('submit', async (event) => {
      event.preventDefault()
      const button = form.querySelector('button')
      const alert = form.querySelector('[role=alert]')
      button.disabled = true
      alert.hidden = true
      try {
        form.elements.credential.value = await ask(form.dataset)
        form.submit()
      } catch (error) {
        alert.textContent = error.name === 'InvalidStateError' ? form.dataset.known : form.dataset.failed
        alert.hidden = false
        button.disabled = false
      }
    })
  // A page that the browser kept has a button that was used.
  addEventListener('pageshow', () => {
    for (const each of document.querySelectorAll('form[data-kind] button')) each.disabled = false
  })
})()`

export const passkeyScriptHash = createHash('sha256').update(passkeyScript).digest('base64')
export const passkeyScriptElement = `<script>${passkeyScript}</script>`
