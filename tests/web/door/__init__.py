"""The door: certificates and passwords that are made here, by the openssl and bcrypt that users have."""
