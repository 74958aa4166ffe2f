/** Exits and look-ups first, then signed actions, then new orders, then views, then the reconciler. */
export type Urgency = 'exit' | 'work' | 'admission' | 'view' | 'background'
