// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Addresses} from "./shared/Addresses.sol";

/// Deploys the wallet of an owner at its one address. The proxy is that of Solady (MIT), whose bytes decide the address:
/// an ERC-1967 beacon proxy with arguments behind its code, here this factory and the owner.
contract DepositWalletFactory {
    bytes10 private constant CREATION = 0x6100923d8160233d3973;
    bytes private constant CODE =
        hex"60195155f3363d3d373d3d363d602036600436635c60da"
        hex"1b60e01b36527fa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6c"
        hex"b3582b35133d50545afa5036515af43d6000803e604d573d6000fd5b3d6000f3";

    event WalletDeployed(address indexed owner, address indexed wallet);

    /// Anyone may deploy a wallet. One that is deployed already stays as it is.
    function deploy(address owner) external returns (address wallet) {
        wallet = walletOf(owner);
        if (wallet.code.length > 0) return wallet;
        bytes memory creation = _creation(owner);
        bytes32 salt = _salt(owner);
        address created;
        assembly ("memory-safe") {
            created := create2(0, add(creation, 32), mload(creation), salt)
        }
        assert(created == wallet);
        emit WalletDeployed(owner, wallet);
    }

    function walletOf(address owner) public view returns (address) {
        bytes32 codeHash = keccak256(_creation(owner));
        bytes32 hash = keccak256(abi.encodePacked(hex"ff", address(this), _salt(owner), codeHash));
        return address(uint160(uint256(hash)));
    }

    function BEACON() external pure returns (address) {
        return Addresses.WALLET_BEACON;
    }

    function _arguments(address owner) private view returns (bytes memory) {
        return abi.encode(address(this), owner);
    }

    function _salt(address owner) private view returns (bytes32) {
        return keccak256(_arguments(owner));
    }

    function _creation(address owner) private view returns (bytes memory) {
        return abi.encodePacked(CREATION, Addresses.WALLET_BEACON, CODE, _arguments(owner));
    }
}
